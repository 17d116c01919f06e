// How a matrix product can be computed: its shape, and what is left to choose.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/gemm.h"

namespace ptxgen {

// What a matrix product is: c[m][n] = a[m][k] W[n][k]^T.
struct PTXGEN_API GemmShape {
  Format format = Format::kQ4_K;
  u32 n = 4096;
  u32 k = 4096;
  u32 m = 512;
  Activations a_type = Activations::kF32;

  static constexpr auto fields() {
    return std::tuple(field("format", &GemmShape::format, "format of the weights"),
                      field("n", &GemmShape::n, "rows of weights", {1, 1u << 28}),
                      field("k", &GemmShape::k, "values in a row", &GemmShape::k_bounds),
                      field("m", &GemmShape::m, "rows of activations"),
                      field("a_type", &GemmShape::a_type, "type of the activations"));
  }
  Bounds k_bounds() const { return Gemv{.format = format}.k_bounds(); }
  absl::Status validate() const;
  bool operator==(const GemmShape& other) const { return equal_fields(*this, other); }
};

// Who multiplies: a kernel that reads the blocks as they are, or cuBLASLt what the blocks are dequantised to.
enum class GemmPath : u8 {
  kFused,  // a kernel of GemmVariant::schedule
  kSgemm,  // f32 throughout; weights are dequantised in each call, a part at a time that stays in the L2
  kHgemm,  // f16 weights and activations, f32 sums; the executor keeps a copy of the weights
  kDequantHgemm,  // the same without a copy: dequantised in each call, as for sgemm
  kFp8,           // e4m3 weights and activations, f32 sums; the executor keeps a copy of the weights
};
template <>
inline constexpr std::array<std::string_view, 5> kEnumNames<GemmPath> = {"fused", "sgemm", "hgemm",
                                                                         "dequant_hgemm", "fp8"};

// What decides, beside the shape, about how it is computed. Written as "wgmma tile_m=64", "tiled", "hgemm".
struct PTXGEN_API GemmVariant {
  GemmSchedule schedule = GemmSchedule::kMma;  // this and the tiles belong to path fused
  u32 tile_m = 0;
  u32 tile_n = 0;
  u32 split_k = 0;
  u32 ctas = 0;
  GemmPath path = GemmPath::kFused;

  static constexpr auto fields() {
    return std::tuple(
        field("schedule", &GemmVariant::schedule, "who multiplies what with what"),
        optional_field("tile_m", &GemmVariant::tile_m, "rows of a in a CTA", {1, 256}),
        optional_field("tile_n", &GemmVariant::tile_n, "rows of weights in a CTA", {32, 128, 32}),
        optional_field("split_k", &GemmVariant::split_k, "CTAs, or teams of one, that share k", {2, 8}),
        optional_field("ctas", &GemmVariant::ctas, "CTAs that take tiles in turn", {1, 65536}),
        fixed_field("path", &GemmVariant::path));
  }
  bool operator==(const GemmVariant& other) const { return equal_fields(*this, other); }

  // Reads what to_string() writes; commas may stand for the spaces.
  static absl::StatusOr<GemmVariant> parse(std::string_view text);
  std::string to_string() const;
};

// One m stands for all whose kernel is chosen alike: the next multiple of 8, and of more than 256 rows of a
// thirty-second of the next power of two, so that tiles made for it have few rows that are not there.
constexpr u32 bucket_rows(u32 m) {
  constexpr u32 kFewest = 8, kMost = 65536;
  m = std::clamp(m, kFewest, kMost);
  const u32 step = (std::max)(kFewest, std::bit_ceil(m) / 32);
  return (m + step - 1) / step * step;
}

// The kernel of path fused. m is its argument; whether such a kernel exists is left to its validate().
PTXGEN_API Gemm kernel_of(const GemmShape& shape, const GemmVariant& variant);

// Whether a StageF16 comes before that kernel: schedules wgmma and mma take f32 activations staged.
PTXGEN_API bool stages(const GemmShape& shape, const GemmVariant& variant);

// The narrowest tile of schedule mma or wgmma that holds m rows, at most its widest.
PTXGEN_API u32 narrowest_tile(GemmSchedule schedule, u32 m);

}  // namespace ptxgen

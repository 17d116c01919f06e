// How a matrix product can be computed: its shape, and what is left to choose.
#pragma once

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

// What decides, beside the shape, about the kernel. Written as "wgmma tile_m=64", "tiled".
struct PTXGEN_API GemmVariant {
  GemmSchedule schedule = GemmSchedule::kMma;
  u32 tile_m = 0;
  u32 tile_n = 0;
  u32 split_k = 0;

  static constexpr auto fields() {
    return std::tuple(
        field("schedule", &GemmVariant::schedule, "who multiplies what with what"),
        optional_field("tile_m", &GemmVariant::tile_m, "rows of a in a CTA", {1, 256}),
        optional_field("tile_n", &GemmVariant::tile_n, "rows of weights in a CTA", {32, 128, 32}),
        optional_field("split_k", &GemmVariant::split_k, "CTAs that share k", {2, 8}));
  }
  bool operator==(const GemmVariant& other) const { return equal_fields(*this, other); }

  // Reads what to_string() writes; commas may stand for the spaces.
  static absl::StatusOr<GemmVariant> parse(std::string_view text);
  std::string to_string() const;
};

// The kernel. m is its argument; whether such a kernel exists is left to its validate().
PTXGEN_API Gemm kernel_of(const GemmShape& shape, const GemmVariant& variant);

// The narrowest tile of schedule mma or wgmma that holds m rows, at most its widest.
PTXGEN_API u32 narrowest_tile(GemmSchedule schedule, u32 m);

}  // namespace ptxgen

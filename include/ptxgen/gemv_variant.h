// How a product can be computed: its shape, and what is left to choose.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/gemv.h"
#include "ptxgen/kernel_type.h"

namespace ptxgen {

// What a product is: y[m][n] = W[n][k] x[m][k]^T.
struct PTXGEN_API GemvShape {
  Format format = Format::kQ4_K;
  u32 n = 4096;
  u32 k = 4096;
  u32 m = 1;
  Activations x_type = Activations::kF32;

  static constexpr auto fields() {
    return std::tuple(field("format", &GemvShape::format, "format of the weights"),
                      field("n", &GemvShape::n, "rows of weights", {1, 1u << 28}),
                      field("k", &GemvShape::k, "values in a row", &GemvShape::k_bounds),
                      field("m", &GemvShape::m, "rows of activations"),
                      field("x_type", &GemvShape::x_type, "type of the activations"));
  }
  Bounds k_bounds() const { return Gemv{.format = format}.k_bounds(); }
  absl::Status validate() const;
  bool operator==(const GemvShape& other) const { return equal_fields(*this, other); }
};

// What decides, beside the shape, about the kernel. Written as "stream", "stream ctas=132 row_lanes=16 ...",
// "multi_warp num_warps=8", "mma ctas=132 ... columns=16 ...".
struct PTXGEN_API GemvVariant {
  Schedule schedule = Schedule::kStream;
  u32 num_warps = 0;
  u32 outputs_per_block = 0;
  StreamPlan plan = {};
  MmaPlan mma_plan = {};

  static constexpr auto fields() {
    return std::tuple(
        field("schedule", &GemvVariant::schedule, "who reads what"),
        optional_field("num_warps", &GemvVariant::num_warps, "warps a row", {1, 32}),
        optional_field("outputs_per_block", &GemvVariant::outputs_per_block, "rows a CTA", {1, 32}),
        fields_of(&GemvVariant::plan), fields_of(&GemvVariant::mma_plan));
  }
  bool operator==(const GemvVariant& other) const { return equal_fields(*this, other); }

  // Whether the constants belong to the schedule.
  absl::Status validate() const;

  // Reads what to_string() writes; commas may stand for the spaces.
  static absl::StatusOr<GemvVariant> parse(std::string_view text);
  std::string to_string() const;
};

// The most rows of x that one kernel takes. More are dealt with so many at a time.
inline constexpr u32 kMostGemvRows = 16;

// Whether the schedule has kernels for several rows of x.
constexpr bool takes_rows(Schedule schedule) {
  return schedule >= Schedule::kStream;
}

// The kernel that takes shape.m rows at once: Gemv, or for several rows and the tensor cores BatchedGemv.
// Whether such a kernel exists is left to its validate().
PTXGEN_API KernelType kernel_of(const GemvShape& shape, const GemvVariant& variant);

}  // namespace ptxgen

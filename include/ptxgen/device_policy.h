// Which kernel a product gets: by its format, shape and device, from measurements, or as somebody asks.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ptxgen/device.h"
#include "ptxgen/gemm_variant.h"
#include "ptxgen/gemv_variant.h"
#include "ptxgen/tuning.h"

namespace ptxgen {

struct GemvChoice {
  GemvVariant variant;
  u32 rows = 1;        // of x that its kernel takes at once
  std::string reason;  // why this one: a line
};

struct GemmChoice {
  GemmVariant variant;
  std::string reason;  // why this one: a line
  bool asked = false;  // by the call, the executor or the environment
};

// Chosen for all products by an engine and by the user.
template <class Variant>
struct Overrides {
  std::optional<Variant> executor = {};
  std::optional<Variant> environment = {};  // PTXGEN_GEMV, PTXGEN_GEMM
};
using GemvOverrides = Overrides<GemvVariant>;
using GemmOverrides = Overrides<GemmVariant>;

// One device's kernels of choice. In this order counts what is asked for with a call, by the executor, by the
// environment; then a record of `ptxgen tune`; then what ships with the library. What is asked for and cannot
// be had is refused; a record or a default that does not fit gives way to the next, and the reason says so.
class PTXGEN_API DevicePolicy {
 public:
  // Of the records, those of this device, driver and library version count.
  DevicePolicy(const DeviceProperties& device, GemvOverrides overrides, const TuneRecords& records,
               GemmOverrides gemm_overrides = {});

  // For weights at a multiple of 16 bytes (`aligned`), or else of what their format needs. A choice may take
  // fewer than shape.m rows at once, never more than kMostGemvRows.
  absl::StatusOr<GemvChoice> choose(const GemvShape& shape, bool aligned,
                                    const std::optional<GemvVariant>& call = {}) const;

  // A matrix product. Where no tiles are asked for, those of mma and wgmma, and the CTAs that share one, are
  // the ones that should take the least time on as many SMs as the device has.
  absl::StatusOr<GemmChoice> choose(const GemmShape& shape, bool aligned,
                                    const std::optional<GemmVariant>& call = {}) const;
  // The kernel of choice for it, whatever is asked for.
  absl::StatusOr<GemmChoice> fused(const GemmShape& shape, bool aligned) const;
  // Every variant that such a product can be asked for on this device: the schedules that take its
  // activations and weights, with tiles as choose() gives them, and the paths of cuBLASLt, whether the
  // library is there or not.
  std::vector<GemmVariant> gemm_variants(const GemmShape& shape, bool aligned) const;
  // Whether the call, the executor or the environment asks for a variant of matrix products.
  bool asks_for_gemm(const std::optional<GemmVariant>& call) const {
    return call || gemm_overrides_.executor || gemm_overrides_.environment;
  }

  // The most rows of such a matrix product, whatever its m, that are left to the kernels of matrix-vector
  // products, unless somebody asks for another: none of staged activations. Of 4096 rows of weights or more,
  // at a multiple of 16 bytes, on an H200 staging f32 rows for wgmma is faster from 9 rows on, and beyond
  // 8192 values of k, where those kernels have no room to read ahead, from 5.
  u32 most_gemv_rows(const GemmShape& shape, bool aligned, const std::optional<GemmVariant>& call) const;

  // A fused product, which schedule `stream` alone has, with a plan for this device where it has none; or
  // what stands in the way.
  absl::StatusOr<FusedGemv> plan(const FusedGemv& product, bool aligned) const;

  // Whose plan it is: "stream ... measured on 132 SMs".
  std::string shipped_reason() const;

  const DeviceProperties& device() const { return device_; }
  // A line for each record that does not count, with the reason.
  const std::vector<std::string>& ignored() const { return ignored_; }

 private:
  using VariantOf = std::function<GemvVariant(const GemvShape&)>;
  absl::StatusOr<GemvChoice> with_most_rows(GemvShape shape, bool aligned, const VariantOf& variant) const;
  absl::StatusOr<GemvChoice> tuned(const GemvShape& shape, bool aligned) const;
  absl::StatusOr<GemvChoice> shipped(const GemvShape& shape, bool aligned) const;
  absl::Status fits(const GemvShape& shape, bool aligned, const GemvVariant& variant) const;
  absl::Status has(Schedule schedule, bool aligned) const;
  u32 sms() const;
  GemmVariant with_wgmma_tiles(const GemmShape& shape, const GemmVariant& variant) const;
  absl::StatusOr<GemmVariant> fitted(const GemmShape& shape, bool aligned, GemmVariant variant) const;
  absl::Status takes(GemmPath path, Activations a_type) const;
  absl::StatusOr<GemmChoice> tuned(const GemmShape& shape, bool aligned) const;
  absl::StatusOr<GemmChoice> shipped(const GemmShape& shape, bool aligned) const;
  absl::Status has_shared(const LaunchShape& shape) const;
  template <class D>
  D with_plan(D product) const;
  GemvVariant variant_of(const GemvShape& rows, Schedule schedule) const;

  const DeviceProperties device_;
  const GemvOverrides overrides_;
  const GemmOverrides gemm_overrides_;
  std::vector<TuneRecord> records_;
  std::vector<GemmTuneRecord> gemm_records_;
  std::vector<std::string> ignored_;
};

}  // namespace ptxgen

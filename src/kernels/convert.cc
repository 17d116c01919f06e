// Conversions between element types. A thread takes 8 neighbouring values; the last few, where they make no
// whole unit, one after the other.

#include <limits>
#include <optional>

#include "ptxgen/convert.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/elements.h"
#include "src/kernels/parts/reduce.h"

namespace ptxgen {
namespace {

constexpr u32 kThreads = 256;
constexpr f32 kLargestE4m3 = 448;

// 448 / absmax, and 1 where nothing is to be scaled. Every value times it is at most 448.
Reg<f32> factor_of(const Reg<f32>& absmax) {
  KernelBuilder& k = *absmax.kernel();
  const Reg<f32> factor = div_rn(k.constant<f32>(kLargestE4m3), absmax);
  // A NaN passes: as bits it is above infinity.
  const Reg<u32> bits = bitcast<u32>(factor);
  const Reg<f32> finite = selp(k.constant<f32>(std::numeric_limits<f32>::max()), factor, bits == 0x7f800000u);
  return selp(k.constant<f32>(1.f), finite, absmax == 0.f);
}

// What values are multiplied with, and what their products are.
gemm::RowScale scale_of(ElementType to, const Reg<f32>& absmax) {
  if (to == ElementType::kF16) return gemm::row_scale(bitcast<u32>(absmax));
  KernelBuilder& k = *absmax.kernel();
  const Reg<f32> factor = factor_of(absmax);
  return {factor, selp(k.constant<f32>(1.f), div_rn(absmax, kLargestE4m3), absmax == 0.f)};
}

}  // namespace

absl::Status Convert::validate() const {
  if (scale != ConvertScale::kDevice || to == ElementType::kE4m3 || to == ElementType::kF16)
    return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat("to is ", detail::field_text(to),
                                            " and scale device, which fits values into e4m3 and f16; ",
                                            "convert to one of them, or choose another scale"));
}

LaunchShape Convert::launch_shape(const Args& args) const {
  LaunchShape shape;
  shape.grid = {parts::ctas_for(args.count, kThreads)};
  shape.block = {kThreads};
  return shape;
}

void Convert::build(KernelBuilder& k) const {
  k.maxntid(kThreads);
  parts::launch_dependents(k);
  const auto src = k.param(&Args::src);
  const auto dst = k.param(&Args::dst);
  parts::wait_for_predecessor(k);
  std::optional<Reg<f32>> factor;
  if (scale == ConvertScale::kValue) factor = k.param(&Args::factor);
  if (scale == ConvertScale::kFactor) factor = ld_global(k.param(&Args::factors));
  if (scale == ConvertScale::kDevice) {
    const gemm::RowScale scale = scale_of(to, ld_global(k.param(&Args::absmax)));
    factor = scale.factor;
    k.if_((k.ctaid_x() | k.tid_x()) == 0u, [&] { st_global(k.param(&Args::scale), scale.inverse); });
  }
  const auto scaled = [&](const Reg<f32>& value) { return factor ? value * *factor : value; };
  parts::for_units(
      k, kThreads, k.param(&Args::count),
      [&](const Reg<u64>& unit) {
        parts::Values values = parts::load_unit(from, src, unit);
        for (Reg<f32>& value : values) value = scaled(value);
        parts::store_unit(k, to, dst, unit, values);
      },
      [&](const Reg<u64>& index) {
        const Reg<f32> value = parts::load_one(from, src, index);
        parts::store_one(k, to, dst, index, scaled(value));
      });
}

// ---- The largest absolute value. As integers, the bits of |x| order as the values do, with NaN on top: so
// threads, warps and the whole grid take the maximum of integers, whose order does not matter.

LaunchShape Absmax::launch_shape(const Args& args) const {
  LaunchShape shape;
  shape.grid = {parts::ctas_for(args.count, kThreads)};
  shape.block = {kThreads};
  return shape;
}

void Absmax::build(KernelBuilder& k) const {
  k.maxntid(kThreads);
  parts::launch_dependents(k);
  const auto src = k.param(&Args::src);
  parts::wait_for_predecessor(k);
  Var<u32> most = k.var<u32>(0u);
  const auto take = [&](const Reg<f32>& value) { most = (max)(most, bitcast<u32>(value) & 0x7fffffffu); };
  parts::for_units(
      k, kThreads, k.param(&Args::count),
      [&](const Reg<u64>& unit) {
        for (const Reg<f32>& value : parts::load_unit(from, src, unit)) take(value);
      },
      [&](const Reg<u64>& index) {
        const Reg<f32> value = parts::load_one(from, src, index);
        take(value);
      });
  Reg<u32> warp = most;
  for (u32 distance = 16; distance > 0; distance /= 2) {
    const Reg<u32> other = shfl_sync_bfly(warp, distance, 0x1fu, parts::kAllLanes);
    warp = (max)(warp, other);
  }
  const Pred speaks = (k.tid_x() & 31u) == 0u;
  k.if_(speaks && warp != 0u, [&] { red_global_max(at<u32>(k.param(&Args::absmax)), warp); });
}

}  // namespace ptxgen

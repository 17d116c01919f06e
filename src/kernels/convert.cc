// Conversions between element types. A thread takes a few units of 8 neighbouring values, all of which it
// loads before it stores any; the last values, where they make no whole unit, one after the other.

#include <bit>
#include <limits>
#include <optional>

#include "ptxgen/convert.h"
#include "src/kernels/gemm/row_scale.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/elements.h"
#include "src/kernels/parts/reduce.h"

namespace ptxgen {
namespace {

constexpr u32 kThreads = 256, kUnitsOfThread = 4, kUnitsOfCta = kThreads * kUnitsOfThread;
constexpr u32 kCtasOfSm = 4;  // so many are enough, and leave registers for a thread's units
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

// What the kernel multiplies with, if with anything; by all threads of a CTA.
std::optional<Reg<f32>> factor_by(KernelBuilder& k, const Convert& convert) {
  switch (convert.scale) {
    case ConvertScale::kNone: return std::nullopt;
    case ConvertScale::kValue: return k.param(&Convert::Args::factor);
    case ConvertScale::kFactor: return ld_global(k.param(&Convert::Args::factors));
    case ConvertScale::kDevice: break;
  }
  const auto absmax = at<u32>(k.param(&Convert::Args::absmax));
  Reg<u32> most = ld_global(convert.parts > 1 ? absmax + (min)(k.tid_x(), convert.parts - 1) : absmax);
  for (u32 first = kThreads; first < convert.parts; first += kThreads) {
    const Reg<u32> other = ld_global(absmax + (min)(k.tid_x() + first, convert.parts - 1));
    most = (max)(most, other);
  }
  if (convert.parts > 1) most = parts::cta_max(k, most, kThreads);
  const gemm::RowScale scale = scale_of(convert.to, bitcast<f32>(most));
  k.if_((k.ctaid_x() | k.tid_x()) == 0u, [&] { st_global(k.param(&Convert::Args::scale), scale.inverse); });
  return scale.factor;
}

}  // namespace

absl::Status Convert::validate() const {
  if (parts != 0 && scale != ConvertScale::kDevice) {
    return absl::InvalidArgumentError(str_cat("parts is ", parts, " and scale ", detail::field_text(scale),
                                              "; they belong to scale device: leave them out"));
  }
  if (scale != ConvertScale::kDevice || to == ElementType::kE4m3 || to == ElementType::kF16)
    return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat("to is ", detail::field_text(to),
                                            " and scale device, which fits values into e4m3 and f16; ",
                                            "convert to one of them, or choose another scale"));
}

LaunchShape Convert::launch_shape(const Args& args) const {
  LaunchShape shape;
  shape.grid = {parts::ctas_for(args.count, kUnitsOfCta)};
  shape.block = {kThreads};
  return shape;
}

void Convert::build(KernelBuilder& k) const {
  k.maxntid(kThreads);
  k.minnctapersm(kCtasOfSm);
  parts::launch_dependents(k);
  const auto src = k.param(&Args::src);
  const auto dst = k.param(&Args::dst);
  const Reg<u64> count = k.param(&Args::count);
  parts::wait_for_predecessor(k);

  const Reg<u64> units = count >> 3;
  const Reg<u64> begin = cvt<u64>(k.ctaid_x()) * u64{kUnitsOfCta};
  const Reg<u64> first = begin + cvt<u64>(k.tid_x());
  const auto put = [&](const Reg<u64>& unit, parts::Values values, const std::optional<Reg<f32>>& factor) {
    for (Reg<f32>& value : values) value = factor ? value * *factor : value;
    parts::store_unit(k, to, dst, unit, values);
  };
  const auto whole_cta = [&] {
    std::vector<parts::Values> loaded;
    for (u32 i = 0; i < kUnitsOfThread; ++i)
      loaded.push_back(parts::load_unit(from, src, first + u64{i * kThreads}));
    const std::optional<Reg<f32>> by = factor_by(k, *this);
    for (u32 i = 0; i < kUnitsOfThread; ++i) put(first + u64{i * kThreads}, loaded[i], by);
  };
  const auto last_cta = [&] {
    const std::optional<Reg<f32>> by = factor_by(k, *this);
    k.for_(first, begin + u64{kUnitsOfCta}, kThreads, [&](const Reg<u64>& unit) {
      k.if_(
          unit < units, [&] { put(unit, parts::load_unit(from, src, unit), by); },
          [&] {
            k.for_(unit << 3, (min)(count, (unit << 3) + u64{parts::kUnit}), 1, [&](const Reg<u64>& index) {
              const Reg<f32> value = parts::load_one(from, src, index);
              parts::store_one(k, to, dst, index, by ? value * *by : value);
            });
          });
    });
  };
  k.if_(begin + u64{kUnitsOfCta} <= units, whole_cta, last_cta);
}

// ---- The largest absolute value. As integers, the bits of |x| order as the values do, with NaN on top: so
// threads, CTAs and the whole grid take the maximum of integers, whose order does not matter.

namespace {

constexpr u32 kAbsmaxThreads = 512, kUnitsAtOnce = 2, kUnitsOfTurn = kAbsmaxThreads * kUnitsAtOnce;

}  // namespace

absl::Status Absmax::validate() const {
  if (parts == 0 || std::has_single_bit(parts)) return absl::OkStatus();
  return absl::InvalidArgumentError(str_cat("parts is ", parts, "; it must be a power of two"));
}

LaunchShape Absmax::launch_shape(const Args& args) const {
  LaunchShape shape;
  shape.grid = {parts ? parts : parts::ctas_for(args.count, kUnitsOfTurn)};
  shape.block = {kAbsmaxThreads};
  return shape;
}

void Absmax::build(KernelBuilder& k) const {
  k.maxntid(kAbsmaxThreads);
  parts::launch_dependents(k);
  const auto src = k.param(&Args::src);
  const Reg<u64> count = k.param(&Args::count);
  parts::wait_for_predecessor(k);

  // The CTA's units: whole ones, and perhaps the last, which is not.
  const Reg<u64> units = count >> 3;
  const Reg<u64> rounded_up = ((count + u64{parts::kUnit - 1}) >> 3) + u64{parts} - u64{1};
  const Reg<u64> of_cta =
      parts ? rounded_up >> static_cast<u32>(std::countr_zero(parts)) : k.constant<u64>(kUnitsOfTurn);
  const Reg<u64> begin = cvt<u64>(k.ctaid_x()) * of_cta;
  const Reg<u64> end = (min)(begin + of_cta, units);
  Var<u32> most = k.var<u32>(0u);
  const auto bits = [](const Reg<f32>& value) { return bitcast<u32>(value) & 0x7fffffffu; };
  k.for_(begin + cvt<u64>(k.tid_x()), end, kUnitsOfTurn, [&](const Reg<u64>& first) {
    std::vector<parts::Values> loaded;
    for (u32 i = 0; i < kUnitsAtOnce; ++i)
      loaded.push_back(parts::load_unit(from, src, (min)(first + u64{i * kAbsmaxThreads}, end - u64{1})));
    Reg<u32> top = most;
    for (const parts::Values& values : loaded) {
      for (const Reg<f32>& value : values) top = (max)(top, bits(value));
    }
    most = top;
  });
  const Reg<u64> last = (units << 3) + cvt<u64>(k.tid_x());
  k.if_(units - begin < of_cta && last < count, [&] {
    const Reg<f32> value = parts::load_one(from, src, last);
    most = (max)(most, bits(value));
  });
  const Reg<u32> top = parts::cta_max(k, most, kAbsmaxThreads);
  const auto absmax = at<u32>(k.param(&Args::absmax));
  if (parts) {
    k.if_(k.tid_x() == 0u, [&] { st_global(absmax + k.ctaid_x(), top); });
  } else {
    k.if_(k.tid_x() == 0u && top != 0u, [&] { red_global_max(absmax, top); });
  }
}

}  // namespace ptxgen

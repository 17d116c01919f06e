// Quantising activations to int8. A thread takes 8 values, four neighbouring lanes a block of 32.

#include "ptxgen/gemv.h"
#include "src/kernels/parts/dependence.h"
#include "src/kernels/parts/q8_1.h"

namespace ptxgen {
namespace {

constexpr u32 kThreads = 128;
constexpr u32 kUnit = 8;  // values a thread

}  // namespace

LaunchShape QuantizeQ8_1::launch_shape(const Args& args) const {
  LaunchShape shape;
  const u64 units = u64{args.m} * k / kUnit;
  shape.grid = {(units + kThreads - 1) / kThreads};
  shape.block = {kThreads};
  return shape;
}

void QuantizeQ8_1::build(KernelBuilder& b) const {
  b.maxntid(kThreads);
  parts::launch_dependents(b);
  parts::wait_for_predecessor(b);
  const Reg<u64> units = cvt<u64>(b.param(&Args::m)) * u64{k / kUnit};
  const Reg<u64> wanted = cvt<u64>(b.ctaid_x()) * u64{kThreads} + cvt<u64>(b.tid_x());
  const Reg<u64> unit = (min)(wanted, units - u64{1});  // past the end, so that whole warps shuffle
  const auto src = at<parts::Bytes<kUnit * 4>>(b.param(&Args::src)) + unit;
  const auto low = ld_global_v4(at<f32>(src));
  const auto high = ld_global_v4(at<f32, 16>(src));
  const parts::Quantized quantized =
      parts::quantize({low[0], low[1], low[2], low[3], high[0], high[1], high[2], high[3]});
  const Reg<s32> sum = parts::sum_over_lanes(parts::sum_of_bytes(quantized.q), 4);
  const auto dst = at<parts::Bytes<sizeof(BlockQ8_1)>>(b.param(&Args::dst)) + (unit >> 2);
  b.if_(wanted < units, [&] { parts::store(b, quantized, sum, dst, cvt<u32>(unit) & 3u); });
}

}  // namespace ptxgen

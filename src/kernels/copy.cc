// A plain copy: each thread moves four 16-byte vectors, loaded before the first is stored so that they are in
// flight together; neighbouring threads move neighbouring vectors.

#include "ptxgen/kernels.h"
#include "src/kernels/parts/bytes.h"

namespace ptxgen {
namespace {

constexpr u32 kThreads = 256;
constexpr u32 kVectorsPerThread = 4;
constexpr u32 kVectorsPerCta = kThreads * kVectorsPerThread;
using Vector = parts::Bytes<16>;

}  // namespace

LaunchShape Copy::launch_shape(const Args&) const {
  LaunchShape shape;
  shape.grid = {(u64{vectors} + kVectorsPerCta - 1) / kVectorsPerCta};
  shape.block = {kThreads};
  return shape;
}

void Copy::build(KernelBuilder& k) const {
  k.maxntid(kThreads);
  const Reg<u32> first = k.ctaid_x() * kVectorsPerCta + k.tid_x();
  const auto src = at<Vector>(k.param(&Args::src)) + first;
  const auto dst = at<Vector>(k.param(&Args::dst)) + first;
  const auto copy = [&](u32 count) {
    std::vector<std::array<Reg<u32>, 4>> moved;
    for (u32 i = 0; i < count; ++i) moved.push_back(ld_global_nc_v4(at<u32>(src + i * kThreads)));
    for (u32 i = 0; i < count; ++i) st_global_v4(at<u32>(dst + i * kThreads), moved[i]);
  };
  if (vectors % kVectorsPerCta == 0) return copy(kVectorsPerThread);
  k.if_(
      k.ctaid_x() < vectors / kVectorsPerCta, [&] { copy(kVectorsPerThread); },
      [&] {
        for (u32 i = 0; i < kVectorsPerThread; ++i) {
          k.if_(first + i * kThreads < vectors, [&] {
            const auto vector = ld_global_nc_v4(at<u32>(src + i * kThreads));
            st_global_v4(at<u32>(dst + i * kThreads), vector);
          });
        }
      });
}

}  // namespace ptxgen

// A kernel of one's own: root mean squares of rows, one CTA a row. It goes through the same cache and launch
// as the library's kernels.

#include <cmath>
#include <cstdio>
#include <vector>

#include "ptxgen/ptxgen.h"

using namespace ptxgen;  // NOLINT: a kernel reads best without prefixes

// rms[row] = sqrt(mean(x[row][0..k)^2)), summed in f32.
struct RowRms {
  u32 k = 1024;   // values in a row
  u32 warps = 4;  // a row's warps

  static constexpr auto fields() {
    return std::tuple(field("k", &RowRms::k, "values in a row", {1, 1u << 24}),
                      field("warps", &RowRms::warps, "warps a row", {1, 32}));
  }

  struct Args {
    DevicePtr<const f32> x;
    DevicePtr<f32> rms;
    u32 rows;
    static constexpr auto fields() {
      return std::tuple(input("x", &Args::x, &RowRms::x_bytes), output("rms", &Args::rms, &RowRms::rms_bytes),
                        scalar("rows", &Args::rows));
    }
  };
  u64 x_bytes(const Args& args) const { return u64{args.rows} * k * sizeof(f32); }
  u64 rms_bytes(const Args& args) const { return u64{args.rows} * sizeof(f32); }

  std::string name() const { return "row_rms"; }
  LaunchShape launch_shape(const Args& args) const { return {.grid = {args.rows}, .block = {32 * warps}}; }

  void build(KernelBuilder& b) const {
    const u32 threads = 32 * warps;
    b.maxntid(threads);
    const Reg<u32> tid = b.tid_x();
    const Reg<u32> row = b.ctaid_x();
    const auto x = b.param(&Args::x) + cvt<u64>(row) * u64{k};

    // Each thread sums every threads-th value.
    Var<f32> sum = b.var<f32>(0);
    b.for_(tid, k, threads, [&](const Reg<u32>& i) {
      const Reg<f32> value = ld_global_nc(x + i);
      sum = fma_rn(value, value, sum);
    });
    // Within a warp by shuffles, across warps through shared memory.
    for (u32 distance = 16; distance > 0; distance /= 2) {
      const Reg<f32> other = shfl_sync_bfly(Reg<f32>(sum), distance, 31, 0xffffffffu);
      sum = sum + other;
    }
    const auto partial = b.shared<f32>(warps);
    b.if_((tid & 31u) == 0u, [&] { st_shared(partial + (tid >> 5), sum); });
    b.bar_sync(0);
    b.if_(tid == 0u, [&] {
      Var<f32> total = b.var<f32>(0);
      for (u32 warp = 0; warp < warps; ++warp) {
        const Reg<f32> part = ld_shared(partial + warp);
        total = total + part;
      }
      st_global(b.param(&Args::rms) + row, sqrt_rn(div_rn(total, static_cast<f32>(k))));
    });
  }
};

namespace {

absl::Status run() {
  const RowRms rms{.k = 1000, .warps = 4};
  const u32 rows = 3;
  const auto device = Device::open();
  if (!device.ok()) return device.status();
  std::printf("%s\n", device->description().c_str());
  KernelCache cache(*device);
  auto kernel = cache.get(rms);
  if (!kernel.ok()) return kernel.status();

  std::vector<f32> x(rows * rms.k);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = std::sin(0.1f * static_cast<f32>(i)) * static_cast<f32>(1 + i / rms.k);
  auto x_buffer = device->allocate(x.size() * sizeof(f32), "x");
  auto rms_buffer = device->allocate(rows * sizeof(f32), "rms");
  if (!x_buffer.ok() || !rms_buffer.ok()) return absl::ResourceExhaustedError("no device memory");
  if (auto copied = x_buffer->copy_from_host(x.data(), x.size() * sizeof(f32)); !copied.ok()) return copied;

  const Stream stream = device->default_stream();
  const RowRms::Args args{.x = x_buffer->ptr<const f32>(), .rms = rms_buffer->ptr<f32>(), .rows = rows};
  if (auto launched = kernel->launch(stream, args); !launched.ok()) return launched;
  if (auto done = stream.synchronize(); !done.ok()) return done;
  std::vector<f32> result(rows);
  if (auto copied = rms_buffer->copy_to_host(result.data(), rows * sizeof(f32)); !copied.ok()) return copied;

  for (u32 row = 0; row < rows; ++row) {
    double squares = 0;
    for (u32 i = 0; i < rms.k; ++i) squares += double{x[row * rms.k + i]} * x[row * rms.k + i];
    const double expected = std::sqrt(squares / rms.k);
    std::printf("row %u: %.6f, expected %.6f\n", row, result[row], expected);
    if (!(std::abs(result[row] - expected) < 1e-5 * expected))
      return absl::InternalError("the result is wrong");
  }
  return absl::OkStatus();
}

}  // namespace

int main() {
  const absl::Status status = run();
  if (!status.ok()) std::fprintf(stderr, "custom_kernel: %s\n", status.ToString().c_str());
  return status.ok() ? 0 : 1;
}

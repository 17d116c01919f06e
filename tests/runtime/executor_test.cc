// The executor on the emulated device, or on CUDA device 0 when PTXGEN_TEST_DEVICE is "cuda".
#include "ptxgen/executor.h"

#include "ptxgen/environment.h"

#include "tests/kernels/harness.h"
#include "tests/runtime/layer.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"

namespace ptxgen {
namespace {

using testing::contains;
using testing::near;
using testing::ok;
using testing::plain_product;
using testing::random_values;
using testing::random_weights;
using testing::take;
using testing::test_device;
using testing::to_device;
using testing::to_host;
using testing::untuned;

Buffer output(u64 values) {
  return take(test_device().allocate(values * sizeof(float), "y"));
}

}  // namespace

TEST_CASE("a handle of weights checks extents and alignment", "[runtime][executor]") {
  const auto message = [](const absl::StatusOr<WeightMatrix>& matrix) {
    REQUIRE_FALSE(matrix.ok());
    return std::string(matrix.status().message());
  };
  CHECK(take(WeightMatrix::borrow(Format::kQ4_K, 3, 512, 4096, 3 * 2 * 144)).bytes() == 3 * 2 * 144);
  CHECK(contains(message(WeightMatrix::borrow(Format::kQ4_K, 3, 512, 4096, 3 * 2 * 144 - 1)),
                 "863 bytes are given; it takes 864"));
  CHECK(contains(message(WeightMatrix::borrow(Format::kQ4_K, 3, 500, 4096, 1 << 20)), "k is 500"));
  CHECK(contains(message(WeightMatrix::borrow(Format::kQ4_K, 0, 512, 4096, 1 << 20)), "n is 0"));
  CHECK(contains(message(WeightMatrix::borrow(Format::kQ4_K, 3, 512, 4104, 1 << 20)), "multiple of 16"));
  CHECK(contains(message(WeightMatrix::borrow(Format::kQ6_K, 3, 512, 4097, 1 << 20)), "multiple of 2"));
  CHECK(contains(message(WeightMatrix::borrow(Format::kQ6_K, 3, 512, 0, 1 << 20)), "null"));
  CHECK_FALSE(take(WeightMatrix::borrow(Format::kQ6_K, 3, 512, 4098, 1 << 20)).aligned());
  CHECK(contains(message(WeightMatrix::own(Format::kQ6_K, 3, 512, nullptr)), "no buffer"));
  auto buffer = std::make_shared<Buffer>(take(test_device().allocate(1000)));
  CHECK(contains(message(WeightMatrix::own(Format::kQ4_K, 3, 512, buffer, 144)), "856 bytes are given"));
  CHECK(contains(message(WeightMatrix::own(Format::kQ4_K, 3, 512, buffer, 1001)), "begins at byte 1001"));
  std::weak_ptr<Buffer> alive = buffer;
  {
    const WeightMatrix matrix = take(WeightMatrix::own(Format::kQ4_K, 3, 512, std::move(buffer)));
    CHECK_FALSE(alive.expired());
  }
  CHECK(alive.expired());
}

TEST_CASE("any number of rows is a product", "[runtime][executor][device]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Stream stream = test_device().default_stream();
  for (const Format format : {Format::kQ4_K, Format::kQ8_0}) {
    const u32 k = format == Format::kQ4_K ? 512 : 96, n = 37;
    const WeightMatrix w = random_weights(test_device(), format, n, k, 1);
    const std::vector<float> x = random_values(21 * k, 2);
    const std::vector<float> expected = plain_product(cache, w, x);
    const Buffer in = to_device(test_device(), x, "x");
    for (const bool prepare : {false, true}) {
      PreparedActivations prepared = take(executor.make_activations(k, 21));
      ok(executor.prepare_activations(stream, in.ptr<const f32, 16>(), 21, prepared));
      for (const u32 m : {1u, 2u, 3u, 4u, 5u, 8u, 9u, 16u}) {
        CAPTURE(k, m, prepare);
        Buffer out = output(m * n);
        const ProductInput input = prepare ? ProductInput(prepared) : ProductInput(in.ptr<const f32>());
        const GemvReport report = take(executor.gemv_batch(stream, w, input, m, out.ptr<f32>()));
        ok(test_device().synchronize());
        CHECK(near(to_host(out), {expected.begin(), expected.begin() + m * n}));
        CHECK(report.kernels.size() == 1);
        CHECK(report.path.starts_with(m > 4 ? "mma ctas=3 stages=" : "stream ctas=37 row_lanes="));
        CHECK(contains(report.reason, "shipped default"));
        CHECK(contains(report.kernels.front(), m == 1 ? "_gemv k=" : "_batched_gemv k="));
      }
      // More rows than a kernel takes, and what a schedule takes at once when it is asked for.
      for (const auto& [variant, kernels] : {std::pair(std::optional<GemvVariant>(), 2u),
                                             {GemvVariant{Schedule::kStream}, 6u},
                                             {GemvVariant{Schedule::kMma}, 2u}}) {
        Buffer out = output(21 * n);
        const ProductInput input = prepare ? ProductInput(prepared) : ProductInput(in.ptr<const f32>());
        const GemvReport report =
            take(executor.gemv_batch(stream, w, input, 21, out.ptr<f32>(), {.variant = variant}));
        CHECK(near(to_host(out), expected));
        CHECK(report.kernels.size() == kernels);
      }
    }
  }
}

TEST_CASE("no rows are no launch", "[runtime][executor]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const WeightMatrix w = take(WeightMatrix::borrow(Format::kQ4_K, 3, 512, 4096, 1 << 20));
  const GemvReport report = take(
      executor.gemv_batch(test_device().default_stream(), w, DevicePtr<const f32>{}, 0, DevicePtr<f32>{}));
  CHECK(report.kernels.empty());
  CHECK(cache.stats().compiles == 0);
}

TEST_CASE("weights that are not at a multiple of 16 get a schedule without that need",
          "[runtime][executor][device]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const u32 k = 512, n = 9;
  const WeightMatrix w = random_weights(test_device(), Format::kQ6_K, n, k, 3, 2);
  REQUIRE_FALSE(w.aligned());
  const std::vector<float> x = random_values(3 * k, 4);
  const Buffer in = to_device(test_device(), x, "x");
  Buffer out = output(3 * n);
  const GemvReport report =
      take(executor.gemv_batch(test_device().default_stream(), w, in.ptr<const f32>(), 3, out.ptr<f32>()));
  CHECK(near(to_host(out), plain_product(cache, w, x)));
  CHECK(report.path == "half_warp_dp4a");
  CHECK(contains(report.reason, "needs weights at a multiple of 16 bytes, and these are not"));
  CHECK(report.kernels.size() == 3);
}

TEST_CASE("prepared activations are what their handle says, whatever becomes of addresses",
          "[runtime][executor][device]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Stream stream = test_device().default_stream();
  const u32 k = 512, n = 21;
  const WeightMatrix w = random_weights(test_device(), Format::kQ4_K, n, k, 5);
  const std::vector<float> first = random_values(k, 6), second = random_values(k, 7);
  Buffer in = to_device(test_device(), first, "x"), out = output(n);
  const auto product = [&](const ProductInput& x) {
    ok(executor.gemv(stream, w, x, out.ptr<f32>()).status());
    ok(test_device().synchronize());
    return to_host(out);
  };
  PreparedActivations prepared = take(executor.make_activations(k, 1));
  CHECK(contains(executor.gemv(stream, w, prepared, out.ptr<f32>()).status().message(),
                 "have 0 rows of 512 values; the product takes 1 of 512"));
  ok(executor.prepare_activations(stream, in.ptr<const f32, 16>(), 1, prepared));
  CHECK(near(product(prepared), plain_product(cache, w, first)));
  const std::vector<float> of_first = product(prepared);

  // The same address with other content: f32 is read anew, what was prepared stays what it was.
  ok(in.copy_from_host(second.data(), k * sizeof(float)));
  CHECK(near(product(in.ptr<const f32>()), plain_product(cache, w, second)));
  CHECK(product(prepared) == of_first);
  ok(executor.prepare_activations(stream, in.ptr<const f32, 16>(), 1, prepared));
  CHECK(near(product(prepared), plain_product(cache, w, second)));

  // Weights that are overwritten are read anew too.
  const WeightMatrix other = random_weights(test_device(), Format::kQ4_K, n, k, 8);
  std::vector<std::byte> blocks(w.bytes());
  auto buffer = std::make_shared<Buffer>(take(test_device().allocate(w.bytes(), "weights")));
  const WeightMatrix changing = take(WeightMatrix::own(Format::kQ4_K, n, k, buffer));
  for (const u64 seed : {u64{5}, u64{8}}) {
    const Gemv gemv = {.k = k, .n = n};
    const KernelType kernel(gemv);
    ok(take(reference::operation_of(kernel, kernel->default_arguments()))
           ->make_input(0, seed, 0, absl::MakeSpan(blocks)));
    ok(buffer->copy_from_host(blocks.data(), blocks.size()));
    ok(executor.gemv(stream, changing, in.ptr<const f32>(), out.ptr<f32>()).status());
    CHECK(near(to_host(out), plain_product(cache, seed == 5 ? w : other, second)));
  }

  const WeightMatrix longer = random_weights(test_device(), Format::kQ4_K, n, 768, 9);
  CHECK(contains(executor.gemv(stream, longer, prepared, out.ptr<f32>()).status().message(),
                 "the product takes 1 of 768"));
  CHECK(contains(executor.prepare_activations(stream, in.ptr<const f32, 16>(), 2, prepared).message(),
                 "room for 1"));
  CHECK_FALSE(executor.make_activations(100, 1).ok());
}

TEST_CASE("activations that could not be quantised anew are nobody's", "[runtime][executor]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Buffer x = to_device(test_device(), random_values(1024, 12), "x");
  PreparedActivations prepared = take(executor.make_activations(512, 2));
  const Stream stream = test_device().default_stream();
  for (const auto& [source, m] : {std::pair(DevicePtr<const f32, 16>{}, 1u), {x.ptr<const f32, 16>(), 3u}}) {
    ok(executor.prepare_activations(stream, x.ptr<const f32, 16>(), 2, prepared));
    CHECK(prepared.m() == 2);
    CHECK_FALSE(executor.prepare_activations(stream, source, m, prepared).ok());
    CHECK(prepared.m() == 0);
  }
}

TEST_CASE("what is asked for wins: call, executor, environment, record, default", "[runtime][executor]") {
  KernelCache cache(test_device());
  const u32 k = 512, n = 9;
  const WeightMatrix w = random_weights(test_device(), Format::kQ4_K, n, k, 10);
  const Buffer in = to_device(test_device(), random_values(k, 11), "x");
  Buffer out = output(n);
  ExecutorOptions options = untuned();
  std::optional<GemvVariant> call;
  const auto report = [&] {
    Executor executor(cache, options);
    return take(executor.gemv(test_device().default_stream(), w, in.ptr<const f32>(), out.ptr<f32>(),
                              {.variant = call}));
  };
  CHECK(contains(report().reason, "shipped default"));
  CHECK(contains(report().path, "stream ctas=9"));

  TuneRecord record = TuneRecord::of_device(test_device().properties());
  record.shape = {.format = Format::kQ4_K, .n = n, .k = k, .m = 1};
  record.variant = {.schedule = Schedule::kWide};
  record.microseconds = 1.5, record.date = "2026-01-02";
  options.tuned->records = {record};
  CHECK(report().path == "wide");
  CHECK(report().reason == "ptxgen tune measured it on 2026-01-02: 1.5 us");

  const testing::ScopedVariable variable(env::kGemv.name, "multi_warp num_warps=2");
  CHECK(report().path == "multi_warp num_warps=2");
  CHECK(report().reason == "PTXGEN_GEMV asks for it");

  options.gemv = GemvVariant{.schedule = Schedule::kTiled, .outputs_per_block = 4};
  CHECK(report().path == "tiled outputs_per_block=4");
  CHECK(report().reason == "the executor asks for it");

  call = GemvVariant{.schedule = Schedule::kCoalesced};
  CHECK(report().path == "coalesced");
  CHECK(report().reason == "the call asks for it");
  CHECK(report().kernels == std::vector<std::string>{"q4k_gemv k=512 n=9 schedule=coalesced x_type=f32"});
}

TEST_CASE("what is asked for and cannot be had is refused", "[runtime][executor]") {
  KernelCache cache(test_device());
  const Stream stream = test_device().default_stream();
  const WeightMatrix w = random_weights(test_device(), Format::kQ6_K, 9, 512, 10, 2);
  Executor executor(cache, untuned());
  const Buffer in = to_device(test_device(), random_values(512, 11), "x");
  Buffer out = output(9);
  const auto asked = [&](const GemvVariant& variant) {
    const auto report = executor.gemv(stream, w, in.ptr<const f32>(), out.ptr<f32>(), {.variant = variant});
    REQUIRE_FALSE(report.ok());
    return std::string(report.status().message());
  };
  CHECK(contains(asked({.schedule = Schedule::kStream}), "the call asks for stream, which format=q6k"));
  CHECK(contains(asked({.schedule = Schedule::kStream}), "needs weights at a multiple of 16"));
  CHECK(contains(asked({.schedule = Schedule::kWarp, .num_warps = 2}), "num_warps is given"));
  const testing::ScopedVariable variable(env::kGemv.name, "fastest");
  Executor confused(cache, untuned());
  const auto refused = confused.gemv(stream, w, in.ptr<const f32>(), out.ptr<f32>());
  REQUIRE_FALSE(refused.ok());
  CHECK(contains(refused.status().message(), "PTXGEN_GEMV='fastest'"));
  CHECK(contains(refused.status().message(), "half_warp_dp4a"));
  CHECK(confused.prepare({GemvShape{}}).at(0) == refused.status());
}

TEST_CASE("variants are read as they are written", "[runtime][executor]") {
  for (const GemvVariant& variant :
       {GemvVariant{}, GemvVariant{.schedule = Schedule::kMultiWarp, .num_warps = 3},
        GemvVariant{.plan = {.ctas = 5, .row_lanes = 8, .groups = 2, .rows = 1, .stages = 3}}}) {
    CHECK(take(GemvVariant::parse(variant.to_string())) == variant);
  }
  CHECK(take(GemvVariant::parse("multi_warp,num_warps=8")).num_warps == 8);
  for (const char* bad : {"", "num_warps=8", "multi_warp 8", "multi_warp num_warps=33", "stream ctas=x"})
    CHECK_FALSE(GemvVariant::parse(bad).ok());
}

// ---- Fused

TEST_CASE("fused products are one launch", "[runtime][executor][device]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Stream stream = test_device().default_stream();
  const u32 k = 512;
  const WeightMatrix q = random_weights(test_device(), Format::kQ4_K, 40, k, 20),
                     key = random_weights(test_device(), Format::kQ4_K, 8, k, 21),
                     value = random_weights(test_device(), Format::kQ6_K, 8, k, 22);
  const std::vector<float> x = random_values(k, 23);
  const Buffer in = to_device(test_device(), x, "x");
  Buffer y = output(40), y_b = output(8), y_c = output(8);
  FusedProducts products = {.weights = {q, key, value}, .y = {y.ptr<f32>(), y_b.ptr<f32>(), y_c.ptr<f32>()}};
  const GemvReport report = take(executor.fused(stream, products, in.ptr<const f32>()));
  CHECK(report.kernels.size() == 1);
  CHECK(contains(report.path, "stream ctas="));
  CHECK(near(to_host(y), plain_product(cache, q, x)));
  CHECK(near(to_host(y_b), plain_product(cache, key, x)));
  CHECK(near(to_host(y_c), plain_product(cache, value, x)));

  // A residual that is the output.
  const std::vector<float> before = random_values(40, 24);
  ok(y.copy_from_host(before.data(), 40 * sizeof(float)));
  products = {.weights = {q}, .residual = y.ptr<const f32>(), .y = {y.ptr<f32>()}};
  ok(executor.fused(stream, products, in.ptr<const f32>()).status());
  std::vector<float> sum = plain_product(cache, q, x);
  for (u32 i = 0; i < 40; ++i) sum[i] += before[i];
  CHECK(near(to_host(y), sum));

  // A plan of the call's own.
  products.plan = StreamPlan{.ctas = 4, .row_lanes = 16, .groups = 2, .rows = 1, .stages = 2};
  const GemvReport planned = take(executor.fused(stream, products, in.ptr<const f32>()));
  CHECK(planned.path == "stream ctas=4 row_lanes=16 groups=2 rows=1 stages=2");
  CHECK(planned.reason == "the call asks for it");

  CHECK_FALSE(executor.fused(stream, {}, in.ptr<const f32>()).ok());
  products.weights = {q, random_weights(test_device(), Format::kQ4_K, 8, 256, 25)};
  CHECK(contains(executor.fused(stream, products, in.ptr<const f32>()).status().message(),
                 "the rows of one matrix have 256 values"));
}

TEST_CASE("fused products that cannot be one launch are several, or refused", "[runtime][executor][device]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Stream stream = test_device().default_stream();
  const u32 k = 512;
  const WeightMatrix a = random_weights(test_device(), Format::kQ4_K, 9, k, 30),
                     b = random_weights(test_device(), Format::kQ6_K, 5, k, 31, 2);
  const std::vector<float> x = random_values(k, 32);
  const Buffer in = to_device(test_device(), x, "x"), gamma = to_device(test_device(), x, "gamma");
  Buffer y = output(9), y_b = output(5);
  FusedProducts products = {.weights = {a, b}, .y = {y.ptr<f32>(), y_b.ptr<f32>()}};
  const GemvReport report = take(executor.fused(stream, products, in.ptr<const f32>()));
  CHECK(report.kernels.size() == 2);
  CHECK(contains(report.reason, "one after the other: schedule stream needs weights at a multiple of 16"));
  CHECK(near(to_host(y), plain_product(cache, a, x)));
  CHECK(near(to_host(y_b), plain_product(cache, b, x)));
  products.gamma = gamma.ptr<const f32, 16>();
  CHECK(contains(executor.fused(stream, products, in.ptr<const f32>()).status().message(),
                 "needs weights at a multiple of 16"));
}

TEST_CASE("a device below sm_90 gets the schedules it has", "[runtime][executor]") {
  const Device device =
      take(Device::open({.choice = DeviceChoice::kEmulator, .emulator_target = Target{80, false}}));
  KernelCache cache(device);
  Executor executor(cache, untuned());
  const u32 k = 512, n = 9;
  const WeightMatrix w = random_weights(device, Format::kQ4_K, n, k, 40);
  const std::vector<float> x = random_values(2 * k, 41);
  const Buffer in = to_device(device, x, "x");
  Buffer out = take(device.allocate(2 * n * sizeof(float), "y"));
  const GemvReport report =
      take(executor.gemv_batch(device.default_stream(), w, in.ptr<const f32>(), 2, out.ptr<f32>()));
  CHECK(contains(report.path, "mma_direct ctas=1 "));
  CHECK(contains(report.reason, "stream needs sm_90, and the device is sm_80"));
  CHECK(near(to_host(out), plain_product(cache, w, x)));
  Buffer first = take(device.allocate(n * sizeof(float), "y"));
  const GemvReport one =
      take(executor.gemv(device.default_stream(), w, in.ptr<const f32>(), first.ptr<f32>()));
  CHECK(one.path == "half_warp_dp4a");
  CHECK(near(to_host(first), plain_product(cache, w, {x.begin(), x.begin() + k})));

  // Activations too long for the shared memory that int8 schedules keep them in.
  const DevicePolicy& policy = *executor.policy();
  const GemvChoice choice = take(policy.choose(GemvShape{.n = 8, .k = 65536}, true));
  CHECK(choice.variant.to_string() == "multi_warp");
  CHECK(take(policy.choose({.n = 8, .k = 65536, .x_type = Activations::kQ8_1}, true)).variant.schedule ==
        Schedule::kHalfWarpDp4a);
}

// ---- Graphs

namespace {

// A layer's projections, small: q k v; o; gate up; down.
struct Layer {
  static constexpr u32 kHidden = 512, kInner = 1280;
  const Device& device = test_device();
  WeightMatrix q = random_weights(device, Format::kQ4_K, kHidden, kHidden, 50),
               k = random_weights(device, Format::kQ4_K, 128, kHidden, 51),
               v = random_weights(device, Format::kQ6_K, 128, kHidden, 52),
               o = random_weights(device, Format::kQ4_K, kHidden, kHidden, 53),
               gate = random_weights(device, Format::kQ4_K, kInner, kHidden, 54),
               up = random_weights(device, Format::kQ4_K, kInner, kHidden, 55),
               down = random_weights(device, Format::kQ6_K, kHidden, kInner, 56);
  Buffer gamma = to_device(device, random_values(kHidden, 57), "gamma"),
         x = to_device(device, random_values(kHidden, 58), "x");
  Buffer y_q = output(kHidden), y_k = output(128), y_v = output(128), y_o = output(kHidden),
         y_gate = output(kInner), y_down = output(kHidden), y_q2 = output(kHidden);
  PreparedActivations prepared;

  explicit Layer(Executor& executor) : prepared(take(executor.make_activations(kHidden, 1))) {}

  std::vector<Preparation> needs() const {
    FusedGemv qkv = {.k = kHidden, .n = kHidden, .format_c = Format::kQ6_K, .n_b = 128, .n_c = 128};
    qkv.norm = Norm::kRms;
    FusedGemv out = {.k = kHidden, .n = kHidden};
    out.residual = Residual::kAdd;
    FusedGemv gate_up = {.k = kHidden, .n = kInner, .n_b = kInner};
    gate_up.norm = Norm::kRms;
    gate_up.combine = Combine::kSwiglu;
    return {qkv,
            out,
            gate_up,
            GemvShape{Format::kQ6_K, kHidden, kInner},
            QuantizeQ8_1{kHidden},
            GemvShape{Format::kQ4_K, kHidden, kHidden, 1, Activations::kQ8_1}};
  }

  void run(Executor& executor, const Stream& stream) {
    const auto g = gamma.ptr<const f32, 16>();
    ok(executor
           .fused(stream,
                  {.weights = {q, k, v}, .gamma = g, .y = {y_q.ptr<f32>(), y_k.ptr<f32>(), y_v.ptr<f32>()}},
                  x.ptr<const f32>())
           .status());
    ok(executor
           .fused(stream, {.weights = {o}, .residual = x.ptr<const f32>(), .y = {y_o.ptr<f32>()}},
                  y_q.ptr<const f32>())
           .status());
    ok(executor
           .fused(stream,
                  {.weights = {gate, up}, .gamma = g, .combine = Combine::kSwiglu, .y = {y_gate.ptr<f32>()}},
                  y_o.ptr<const f32>())
           .status());
    ok(executor.gemv(stream, down, y_gate.ptr<const f32>(), y_down.ptr<f32>()).status());
    ok(executor.prepare_activations(stream, y_down.ptr<const f32, 16>(), 1, prepared));
    ok(executor.gemv(stream, q, prepared, y_q2.ptr<f32>()).status());
  }

  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all;
    for (const Buffer* y : {&y_q, &y_k, &y_v, &y_o, &y_gate, &y_down, &y_q2}) all.push_back(to_host(*y));
    return all;
  }
  void clear() {
    for (Buffer* y : {&y_q, &y_k, &y_v, &y_o, &y_gate, &y_down, &y_q2}) ok(y->fill(0xee));
  }
};

}  // namespace

TEST_CASE("a layer's projections replay as they run, and recording compiles nothing",
          "[runtime][executor][device]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Stream stream = take(test_device().create_stream());
  Layer layer(executor);
  for (const absl::Status& status : executor.prepare(layer.needs())) ok(status);
  const u64 compiles = cache.stats().compiles + cache.stats().from_disk;
  CHECK(compiles > 0);

  layer.clear();
  ok(stream.begin_capture());
  layer.run(executor, stream);
  const Graph graph = take(stream.end_capture());
  CHECK(cache.stats().compiles + cache.stats().from_disk == compiles);
  CHECK(cache.stats().failures == 0);

  ok(graph.launch(stream));
  ok(stream.synchronize());
  const std::vector<std::vector<float>> replayed = layer.results();
  layer.clear();
  layer.run(executor, stream);
  ok(stream.synchronize());
  const std::vector<std::vector<float>> eager = layer.results();
  CHECK(replayed == eager);
  for (const std::vector<float>& y : eager) {
    CHECK(std::all_of(y.begin(), y.end(), [](float v) { return std::isfinite(v); }));
    CHECK(std::any_of(y.begin(), y.end(), [](float v) { return v != 0; }));
  }
  CHECK(near(eager[5], plain_product(cache, layer.down, eager[4])));

  // Another vector through the same graph.
  ok(layer.x.copy_from_host(random_values(Layer::kHidden, 59).data(), Layer::kHidden * sizeof(float)));
  ok(graph.launch(stream));
  ok(stream.synchronize());
  const std::vector<std::vector<float>> other = layer.results();
  CHECK(other[6] != eager[6]);
  layer.run(executor, stream);
  ok(stream.synchronize());
  CHECK(layer.results() == other);
}

TEST_CASE("a product that was not prepared is refused in a recording, which goes on",
          "[runtime][executor][device]") {
  KernelCache cache(test_device(), {.store = {.max_bytes = 0}});  // so that every kernel is compiled
  Executor executor(cache, untuned());
  const Stream stream = take(test_device().create_stream());
  const u32 k = 512, n = 9;
  const WeightMatrix w = random_weights(test_device(), Format::kQ4_K, n, k, 60);
  const std::vector<float> x = random_values(5 * k, 61);
  const Buffer in = to_device(test_device(), x, "x");
  Buffer out = output(5 * n);
  PreparedActivations prepared = take(executor.make_activations(k, 1));
  ok(executor.prepare({GemvShape{Format::kQ4_K, n, k, 5}}).at(0));
  CHECK(cache.stats().compiles == 5);  // for one, two, three, four and eight rows
  ok(stream.begin_capture());
  const FusedProducts fused = {.weights = {w}, .residual = out.ptr<const f32>(), .y = {out.ptr<f32>()}};
  for (const absl::Status& refused :
       {executor
            .gemv(stream, w, in.ptr<const f32>(), out.ptr<f32>(), {.variant = GemvVariant{Schedule::kWide}})
            .status(),
        executor.fused(stream, fused, in.ptr<const f32>()).status(),
        executor.prepare_activations(stream, in.ptr<const f32, 16>(), 1, prepared),
        executor.make_activations(k, 1).status()}) {
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK(contains(refused.message(), "before begin_capture()"));
  }
  CHECK(prepared.m() == 0);
  ok(executor.gemv_batch(stream, w, in.ptr<const f32>(), 5, out.ptr<f32>()).status());
  const Graph graph = take(stream.end_capture());
  CHECK(cache.stats().compiles == 5);
  ok(graph.launch(stream));
  ok(stream.synchronize());
  CHECK(near(to_host(out), plain_product(cache, w, x)));
}

TEST_CASE("prepare() says which products cannot be had", "[runtime][executor]") {
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  FusedGemv norm = {.k = 512, .n = 8};
  norm.norm = Norm::kRms;
  const auto statuses = executor.prepare({GemvShape{Format::kQ4_K, 8, 500}, GemvShape{Format::kQ4_K, 8, 512},
                                          Preparation(norm, false), QuantizeQ8_1{33}});
  REQUIRE(statuses.size() == 4);
  CHECK(contains(statuses[0].message(), "k is 500"));
  CHECK(statuses[1].ok());
  CHECK(contains(statuses[2].message(), "multiple of 16"));
  CHECK(contains(statuses[3].message(), "k is 33"));
}

}  // namespace ptxgen

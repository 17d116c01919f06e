// Matrix products of the executor, on the emulated device, or on CUDA device 0 when PTXGEN_TEST_DEVICE is
// "cuda".
#include "ptxgen/environment.h"
#include "ptxgen/executor.h"
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

constexpr u32 kK = 512, kN = 37;

// Weights and up to kRows rows of activations, prepared in every way.
struct Setup {
  static constexpr u32 kRows = 70;

  explicit Setup(const ExecutorOptions& options = untuned(), Format format = Format::kQ4_K, u64 offset = 0)
      : cache(test_device()),
        executor(cache, options),
        stream(test_device().default_stream()),
        weights(random_weights(test_device(), format, kN, kK, 3, offset)),
        values(random_values(kRows * kK, 4)),
        a(to_device(test_device(), values, "a")),
        c(take(test_device().allocate(kRows * kN * sizeof(float), "c"))),
        int8(take(executor.make_activations(kK, kRows))),
        half(take(executor.make_activations(kK, kRows, staged_order(format)))) {}

  ProductInput input(Activations type, u32 m) {
    if (type == Activations::kF32) return a.ptr<const f32>();
    PreparedActivations& prepared = type == Activations::kF16 ? half : int8;
    ok(executor.prepare_activations(stream, a.ptr<const f32, 16>(), m, prepared));
    return prepared;
  }
  absl::StatusOr<GemmReport> run(Activations type, u32 m, const GemmCall& call = {}) {
    const ProductInput rows = input(type, m);
    return executor.gemm(stream, weights, rows, m, c.ptr<f32>(), call);
  }
  std::vector<float> results(u32 m) {
    ok(test_device().synchronize());
    std::vector<float> all = to_host(c);
    all.resize(std::size_t{m} * kN);
    return all;
  }
  std::string refusal(const absl::StatusOr<GemmReport>& report) {
    REQUIRE_FALSE(report.ok());
    return std::string(report.status().message());
  }

  KernelCache cache;
  Executor executor;
  Stream stream;
  WeightMatrix weights;
  std::vector<float> values;
  Buffer a, c;
  PreparedActivations int8, half;
};

TEST_CASE("a matrix product of any number of rows, of activations of every type", "[runtime][gemm][device]") {
  Setup setup;
  const std::vector<float> all = plain_product(setup.cache, setup.weights, setup.values);
  const bool hopper = test_device().target().supports({90, true});
  for (const u32 m : {1u, 2u, 15u, 16u, 17u, 33u, 65u, Setup::kRows}) {
    const std::vector<float> expected(all.begin(), all.begin() + m * kN);
    for (const Activations type : {Activations::kF32, Activations::kQ8_1, Activations::kF16}) {
      CAPTURE(m, detail::field_text(type));
      ok(setup.c.fill(0xee));
      const GemmReport report = take(setup.run(type, m));
      CHECK(near(setup.results(m), expected,
                 type == Activations::kQ8_1 || (type == Activations::kF32 && m <= 16) ? 0.03f : 0.003f));
      const bool staged = type == Activations::kF32 && m > 16 && test_device().target().supports({80, false});
      CHECK(report.kernels.size() == (staged ? 2 : 1));
      CHECK((report.scratch_bytes > 0) == staged);
      if (type != Activations::kF16 && m <= 16) {
        CHECK(contains(report.reason, "m is at most 16: "));
      } else if (type == Activations::kQ8_1) {
        CHECK(report.path == "dp4a");
      } else if (hopper) {
        CHECK(report.path == "wgmma tile_m=8");  // one tile of weights: the others give SMs work
        CHECK(contains(report.reason, "shipped default for activations of type "));
      }
    }
  }
}

TEST_CASE("a matrix product by what the call, the executor or the environment asks for",
          "[runtime][gemm][device]") {
  if (!test_device().target().supports({80, false})) return;
  const auto report = [&](const ExecutorOptions& options, const GemmCall& call) {
    Setup setup(options);
    const GemmReport result = take(setup.run(Activations::kF32, 3, call));
    CHECK(near(setup.results(3), plain_product(setup.cache, setup.weights,
                                               {setup.values.begin(), setup.values.begin() + 3 * kK})));
    return result;
  };
  ExecutorOptions options = untuned();
  CHECK(contains(report(options, {}).reason, "m is at most 16"));
  const testing::ScopedVariable variable(env::kGemm.name, "tiled tile_m=4");
  CHECK(report(options, {}).path == "tiled tile_m=4");
  CHECK(report(options, {}).reason == "PTXGEN_GEMM asks for it");
  options.gemm = GemmVariant{.schedule = GemmSchedule::kWmma};
  CHECK(report(options, {}).path == "wmma");
  CHECK(report(options, {}).reason == "the executor asks for it");
  const GemmReport by_call = report(options, {.variant = GemmVariant{.schedule = GemmSchedule::kMma}});
  CHECK(by_call.path == "mma tile_m=16 tile_n=64 split_k=2");
  CHECK(by_call.reason == "the call asks for it");
  CHECK(by_call.kernels == std::vector<std::string>{
                               "stage_f16 k=512 order=wide_runs",
                               "q4k_gemm k=512 n=37 schedule=mma a_type=f16 tile_m=16 tile_n=64 split_k=2"});
}

TEST_CASE("matrix products that cannot be had are refused, and say why", "[runtime][gemm]") {
  Setup setup;
  const auto asked = [&](const GemmVariant& variant, Activations type = Activations::kF32) {
    return setup.refusal(setup.run(type, 20, {.variant = variant}));
  };
  const GemmVariant wgmma = {.schedule = GemmSchedule::kWgmma};
  CHECK(contains(asked(wgmma, Activations::kQ8_1), "the call asks for wgmma, which format=q4k"));
  CHECK(contains(asked(wgmma, Activations::kQ8_1), "belong to dp4a"));
  CHECK(contains(asked({.schedule = GemmSchedule::kTiled, .tile_m = 64}), "there it is 1 to 16"));
  CHECK(contains(asked({.schedule = GemmSchedule::kMma}, Activations::kQ8_1), "belong to dp4a"));

  const ProductInput half = setup.input(Activations::kF16, 20);
  const auto of = [&](const WeightMatrix& weights, u32 m) {
    return setup.refusal(setup.executor.gemm(setup.stream, weights, half, m, setup.c.ptr<f32>()));
  };
  CHECK(contains(of(setup.weights, 21), "have 20 rows of 512 values; the product takes 21 of 512"));
  CHECK(contains(of(setup.weights, 19), "staged with 20 rows"));
  CHECK(contains(of(random_weights(test_device(), Format::kQ6_K, kN, kK, 3), 20),
                 "staged in the order wide_runs, and weights of q6_K take narrow_runs"));
  CHECK(
      contains(std::string(setup.executor.gemv_batch(setup.stream, setup.weights, half, 1, setup.c.ptr<f32>())
                               .status()
                               .message()),
               "prepared as f16, which gemm() takes"));
  CHECK_FALSE(setup.executor.make_activations(96, 1, StagedOrder::kWideRuns).ok());
  CHECK(take(setup.executor.gemm(setup.stream, setup.weights, DevicePtr<const f32>{}, 0, DevicePtr<f32>{}))
            .kernels.empty());

  const testing::ScopedVariable variable(env::kGemm.name, "fastest");
  Executor confused(setup.cache, untuned());
  CHECK(contains(setup.refusal(confused.gemm(setup.stream, setup.weights, setup.a.ptr<const f32>(), 20,
                                             setup.c.ptr<f32>())),
                 "PTXGEN_GEMM='fastest'"));
}

TEST_CASE("weights that are not at a multiple of 16 have matrix products too", "[runtime][gemm][device]") {
  Setup setup(untuned(), Format::kQ6_K, 2);
  REQUIRE_FALSE(setup.weights.aligned());
  const GemmReport report = take(setup.run(Activations::kF32, 20));
  CHECK(report.path == "wmma_multi_warp");
  CHECK(contains(report.reason, "mma does not fit: schedule mma needs weights at a multiple of 16 bytes"));
  CHECK(near(setup.results(20), plain_product(setup.cache, setup.weights,
                                              {setup.values.begin(), setup.values.begin() + 20 * kK})));
  CHECK(contains(setup.refusal(setup.run(Activations::kF16, 20)), "needs weights at a multiple of 16 bytes"));
}

TEST_CASE("every target has a matrix product", "[runtime][gemm]") {
  const auto path = [](Target target, Activations type, Format format = Format::kQ4_K, u32 m = 512) {
    const DevicePolicy policy(DeviceProperties::of(target, DeviceKind::kCuda, 132), {}, {});
    const auto choice = policy.choose(GemmShape{.format = format, .m = m, .a_type = type}, true);
    return choice.ok() ? choice->variant.to_string() : std::string(choice.status().message());
  };
  CHECK(path({75, false}, Activations::kF32) == "wmma_multi_warp");
  CHECK(path({75, false}, Activations::kQ8_1) == "dp4a");
  CHECK(contains(path({75, false}, Activations::kF16), "schedule mma needs sm_80"));
  CHECK(contains(path({75, false}, Activations::kF16), "schedule wgmma needs sm_90a"));
  CHECK(path({80, false}, Activations::kF16, Format::kQ4_K, 2048) == "mma tile_m=128 tile_n=128");
  CHECK(path({80, false}, Activations::kF16) == "mma tile_m=128 tile_n=64");
  CHECK(path({80, false}, Activations::kF16, Format::kQ4_K, 100) == "mma tile_m=64 tile_n=64 split_k=2");
  CHECK(path({90, true}, Activations::kF16, Format::kQ4_K, 4096) == "wgmma tile_m=256 ctas=132");
  CHECK(path({90, true}, Activations::kF16) == "wgmma tile_m=128");
  // Few tiles: several CTAs for each.
  CHECK(path({90, true}, Activations::kF16, Format::kQ4_K, 16) == "wgmma tile_m=16 tile_n=64 split_k=2");
  CHECK(path({90, true}, Activations::kF16, Format::kQ6_K, 16) == "wgmma tile_m=16 split_k=3");
  CHECK(path({90, true}, Activations::kF16, Format::kQ4_K, 256) == "wgmma tile_m=64");
  CHECK(path({90, true}, Activations::kF16, Format::kQ4_K, 100) == "wgmma tile_m=104 split_k=3");
  CHECK(path({90, true}, Activations::kF16, Format::kQ4_K, 513) == "wgmma tile_m=136");
  // More tiles than SMs: in turn, by so many CTAs that those that stage a have SMs too, but no turn is
  // longer.
  const auto many = [&](u32 n, u32 m, u32 k = 4096) {
    const DevicePolicy policy(DeviceProperties::of({90, true}, DeviceKind::kCuda, 132), {}, {});
    return take(policy.choose({.n = n, .k = k, .m = m, .a_type = Activations::kF32}, true))
        .variant.to_string();
  };
  CHECK(many(28672, 8) == "wgmma tile_m=8 ctas=128");
  CHECK(many(28672, 16) == "wgmma tile_m=16 ctas=124");
  CHECK(many(28672, 64) == "wgmma tile_m=64 ctas=112");
  CHECK(many(28672, 128) == "wgmma tile_m=128 ctas=132");
  CHECK(many(128256, 16) == "wgmma tile_m=16 ctas=126");
  CHECK(many(28672, 16, 768) == "wgmma tile_m=16");
  // As many as run at once: not 4 for each of 32.
  const DevicePolicy wide(DeviceProperties::of({90, true}, DeviceKind::kCuda, 132), {}, {});
  const GemmShape long_rows = {.k = 14336, .m = 16, .a_type = Activations::kF16};
  CHECK(take(wide.choose(long_rows, true)).variant.to_string() == "wgmma tile_m=16 split_k=3");
  const GemmShape fewer_long_rows = {.k = 14336, .m = 8, .a_type = Activations::kF16};
  CHECK(take(wide.choose(fewer_long_rows, true)).variant.to_string() == "wgmma tile_m=8 tile_n=64 split_k=2");
  const GemmShape many_rows = {.k = 14336, .m = 256, .a_type = Activations::kF16};
  CHECK(take(wide.choose(many_rows, true)).variant.to_string() == "wgmma tile_m=128 split_k=2");
  // Tiles of mma as they were measured: more of them where an SM has many, else as few as weights are.
  const auto mma = [&](u32 n, u32 k, u32 m) {
    const GemmVariant any = {.schedule = GemmSchedule::kMma};
    return take(wide.choose({.n = n, .k = k, .m = m, .a_type = Activations::kF16}, true, any))
        .variant.to_string();
  };
  CHECK(mma(14336, 4096, 256) == "mma tile_m=128 tile_n=128");
  CHECK(mma(14336, 4096, 512) == "mma tile_m=64 tile_n=128");
  CHECK(mma(14336, 4096, 1024) == "mma tile_m=128 tile_n=128");
  CHECK(mma(4096, 14336, 512) == "mma tile_m=128 tile_n=128 split_k=2");
  CHECK(mma(4096, 4096, 256) == "mma tile_m=64 tile_n=128 split_k=2");
  CHECK(mma(4096, 14336, 2048) == "mma tile_m=128 tile_n=128");
  // Few rows of activations that are not staged are left to matrix-vector products.
  const auto few_of = [](Target target, const GemmShape& shape, bool aligned = true,
                         const std::optional<GemmVariant>& call = {}) {
    return DevicePolicy(DeviceProperties::of(target, DeviceKind::kCuda, 132), {}, {})
        .most_gemv_rows(shape, aligned, call);
  };
  CHECK(few_of({90, true}, {.m = 8}) == 4);
  CHECK(few_of({90, true}, {.n = 8192, .m = 8}) == 8);
  CHECK(few_of({90, true}, {.n = 28672, .m = 8}) == 4);
  CHECK(few_of({90, true}, {.n = 28672, .k = 768, .m = 8}) == 8);  // which two teams cannot share in turn
  CHECK(few_of({90, true}, {.format = Format::kQ6_K, .m = 8}) == 8);
  CHECK(few_of({90, true}, {.k = 14336, .m = 8}) == 4);
  CHECK(few_of({90, true}, {.m = 8}, false) == 16);
  CHECK(few_of({90, true}, {.n = 1000, .m = 8}) == 16);
  CHECK(few_of({90, true}, {.m = 8, .a_type = Activations::kQ8_1}) == 16);
  CHECK(few_of({90, true}, {.m = 8, .a_type = Activations::kF16}) == 0);
  CHECK(few_of({90, true}, {.m = 8}, true, GemmVariant{.schedule = GemmSchedule::kMma}) == 0);
  CHECK(few_of({80, false}, {.m = 8}) == 16);
  // What is asked for stays as it is.
  const DevicePolicy hopper(DeviceProperties::of({90, true}, DeviceKind::kCuda, 132), {}, {});
  const GemmShape few = {.m = 16, .a_type = Activations::kF16};
  const auto asked = [&](const GemmVariant& variant) {
    return take(hopper.choose(few, true, variant)).variant.to_string();
  };
  CHECK(asked({.schedule = GemmSchedule::kWgmma, .tile_m = 16}) == "wgmma tile_m=16");
  CHECK(asked({.schedule = GemmSchedule::kWgmma, .tile_m = 128}) == "wgmma tile_m=128");
  CHECK(asked({.schedule = GemmSchedule::kWgmma, .tile_m = 128, .ctas = 4}) == "wgmma tile_m=128 ctas=4");
  CHECK(asked({.schedule = GemmSchedule::kWgmma, .split_k = 2}) == "wgmma tile_m=16 tile_n=64 split_k=2");
  CHECK(asked({.schedule = GemmSchedule::kWgmma, .split_k = 3}) == "wgmma tile_m=16 split_k=3");
  CHECK(asked({.schedule = GemmSchedule::kWgmma}) == "wgmma tile_m=16 tile_n=64 split_k=2");
  const auto refused = hopper.choose(few, true, GemmVariant{.schedule = GemmSchedule::kWgmma, .tile_n = 128});
  CHECK(contains(std::string(refused.status().message()), "tile_n is 128 with schedule wgmma"));
  // Less shared memory: a narrower tile.
  CHECK(path({89, false}, Activations::kF16, Format::kQ4_K, 2048) == "mma tile_m=64 tile_n=128");
  CHECK(path({120, false}, Activations::kF16, Format::kQ8_0, 2048) == "mma tile_m=128 tile_n=64");
}

TEST_CASE("a few long rows are staged by clusters, and prepared so", "[runtime][gemm][device]") {
  if (!test_device().target().supports({90, true})) return;
  constexpr u32 kLong = 8448, kRows = 17;
  KernelCache cache(test_device());
  Executor executor(cache, untuned());
  const Stream& stream = test_device().default_stream();
  const WeightMatrix weights = random_weights(test_device(), Format::kQ4_K, kN, kLong, 3);
  const std::vector<float> values = random_values(kRows * kLong, 4);
  const Buffer a = to_device(test_device(), values, "a");
  const Buffer c = take(test_device().allocate(kRows * kN * sizeof(float), "c"));
  const std::vector<float> all = plain_product(cache, weights, values);
  const GemmShape shape = {.n = kN, .k = kLong, .m = kRows, .a_type = Activations::kF32};
  ok(executor.prepare({{shape, true, GemmVariant{.schedule = GemmSchedule::kWgmma}}})[0]);
  const u64 compiles = cache.stats().compiles + cache.stats().from_disk;
  for (const u32 m : {9u, 16u, 17u}) {
    const GemmReport report = take(executor.gemm(stream, weights, a.ptr<const f32>(), m, c.ptr<f32>(),
                                                 {.variant = GemmVariant{.schedule = GemmSchedule::kWgmma}}));
    CHECK(report.kernels[0] == str_cat("stage_f16 k=8448 order=wide_runs", m > 16 ? "" : " ctas=4"));
    ok(test_device().synchronize());
    std::vector<float> result = to_host(c);
    result.resize(std::size_t{m} * kN);
    CHECK(near(result, {all.begin(), all.begin() + m * kN}, 2e-3));
  }
  CHECK(cache.stats().compiles + cache.stats().from_disk == compiles);
}

TEST_CASE("prepared matrix products of any m compile nothing, and replay as they run",
          "[runtime][gemm][device]") {
  for (const Activations type : {Activations::kF32, Activations::kF16}) {
    Setup setup;
    const Stream stream = take(test_device().create_stream());
    const GemmShape shape = {.n = kN, .k = kK, .m = Setup::kRows, .a_type = type};
    const GemmVariant tiles = {.schedule = GemmSchedule::kMma, .tile_m = 32};
    const std::vector<Preparation> needs = {
        shape, {shape, true, tiles}, StageF16{kK, staged_order(Format::kQ4_K)}};
    for (const absl::Status& status : setup.executor.prepare(needs)) ok(status);
    const u64 compiles = setup.cache.stats().compiles + setup.cache.stats().from_disk;
    for (const u32 m : {1u, 16u, 17u, 64u, Setup::kRows}) {
      ok(setup.run(type, m).status());
      CHECK(take(setup.run(type, m, {.variant = tiles})).path == "mma tile_m=32 tile_n=64");
    }
    CHECK(setup.cache.stats().compiles + setup.cache.stats().from_disk == compiles);

    const auto product = [&] {
      ProductInput input = setup.a.ptr<const f32>();
      if (type == Activations::kF16) {
        ok(setup.executor.prepare_activations(stream, setup.a.ptr<const f32, 16>(), Setup::kRows,
                                              setup.half));
        input = setup.half;
      }
      ok(setup.executor.gemm(stream, setup.weights, input, Setup::kRows, setup.c.ptr<f32>()).status());
    };
    for (const absl::Status& status : setup.executor.prepare(needs)) ok(status);  // scratch for this stream
    ok(stream.begin_capture());
    product();
    const Graph graph = take(stream.end_capture());
    for (const u64 seed : {4, 5}) {  // other activations through the same graph
      const std::vector<float> values = random_values(Setup::kRows * kK, seed);
      ok(setup.a.copy_from_host(values.data(), values.size() * sizeof(float)));
      ok(setup.c.fill(0xee));
      ok(graph.launch(stream));
      ok(stream.synchronize());
      const std::vector<float> replayed = setup.results(Setup::kRows);
      ok(setup.c.fill(0xee));
      product();
      ok(stream.synchronize());
      CHECK(setup.results(Setup::kRows) == replayed);
      CHECK(near(replayed, plain_product(setup.cache, setup.weights, values), 0.003f));
    }

    // What was not prepared is refused, and the recording goes on.
    const WeightMatrix other = random_weights(test_device(), Format::kQ4_K, 5, kK, 8);
    ok(stream.begin_capture());
    const auto refused = setup.executor.gemm(stream, other, setup.a.ptr<const f32>(), 40, setup.c.ptr<f32>());
    CHECK(contains(setup.refusal(refused), "with Executor::prepare()"));
    ok(stream.end_capture().status());
  }
}

TEST_CASE("variants of matrix products are read as they are written", "[runtime][gemm]") {
  for (const GemmVariant& variant :
       {GemmVariant{}, GemmVariant{GemmSchedule::kWgmma, 64}, GemmVariant{GemmSchedule::kMma, 32, 64},
        GemmVariant{GemmSchedule::kWgmma, 64, 0, 4}, GemmVariant{GemmSchedule::kDp4a},
        GemmVariant{.path = GemmPath::kSgemm}, GemmVariant{.path = GemmPath::kFp8}}) {
    CHECK(take(GemmVariant::parse(variant.to_string())) == variant);
  }
  CHECK(GemmVariant{.path = GemmPath::kDequantHgemm}.to_string() == "dequant_hgemm");
  for (const char* bad :
       {"", "tile_m=8", "mma 8", "mma tile_m=257", "wgmma tile_k=3", "hgemm tile_m=8", "fused"})
    CHECK_FALSE(GemmVariant::parse(bad).ok());
  CHECK(contains(std::string(GemmVariant::parse("hgem").status().message()),
                 "or a path of cuBLASLt alone: sgemm, hgemm, dequant_hgemm, fp8"));
}

TEST_CASE("a policy lists what a matrix product can be asked for", "[runtime][gemm]") {
  const auto variants = [](Target target, Activations type, bool aligned = true) {
    const DevicePolicy policy(DeviceProperties::of(target, DeviceKind::kCuda, 132), {}, {});
    std::string all;
    for (const GemmVariant& variant : policy.gemm_variants({.m = 512, .a_type = type}, aligned))
      str_append(&all, all.empty() ? "" : ", ", variant.to_string());
    return all;
  };
  CHECK(variants({90, true}, Activations::kF32) ==
        "tiled, dp4a, wmma, wmma_multi_warp, mma tile_m=128 tile_n=128 split_k=2, "
        "wgmma tile_m=128, sgemm, hgemm, dequant_hgemm, fp8");
  CHECK(variants({80, false}, Activations::kF32, false) ==
        "tiled, dp4a, wmma, wmma_multi_warp, sgemm, hgemm, dequant_hgemm");
  CHECK(variants({90, true}, Activations::kF16) == "mma tile_m=128 tile_n=128 split_k=2, wgmma tile_m=128");
  CHECK(variants({90, true}, Activations::kQ8_1) == "dp4a");
  CHECK(variants({90, true}, Activations::kF16Rows) == "hgemm, dequant_hgemm");
  CHECK(variants({90, true}, Activations::kE4m3) == "fp8");
}

TEST_CASE("paths of cuBLASLt are refused where they cannot be had", "[runtime][gemm]") {
  Setup setup;
  const auto asked = [&](GemmPath path, Activations type = Activations::kF32) {
    return setup.refusal(setup.run(type, 20, {.variant = GemmVariant{.path = path}}));
  };
  CHECK(contains(asked(GemmPath::kFp8, Activations::kQ8_1),
                 "path fp8 takes activations of type f32 or e4m3, and these are q8_1"));
  CHECK(contains(asked(GemmPath::kSgemm, Activations::kF16),
                 "path sgemm takes activations of type f32, and these are f16"));
  const DevicePolicy ampere(DeviceProperties::of({80, false}, DeviceKind::kCuda, 108), {}, {});
  CHECK(contains(
      std::string(ampere.choose(GemmShape{}, true, GemmVariant{.path = GemmPath::kFp8}).status().message()),
      "path fp8 needs sm_89, and the device is sm_80"));
}

TEST_CASE("a library that is not cuBLASLt is refused by its name", "[runtime][gemm]") {
  if (test_device().kind() != DeviceKind::kEmulator) return;
  const auto refusal = [](const std::string& library) {
    ExecutorOptions options = untuned();
    options.cublaslt = library;
    Setup setup(options);
    return setup.refusal(
        setup.run(Activations::kF32, 20, {.variant = GemmVariant{.path = GemmPath::kHgemm}}));
  };
  CHECK(contains(refusal(""), "an emulated device cannot run libcublasLt"));
  const std::string absent = refusal("/nonexistent/libcublasLt.so.13");
  CHECK(contains(absent, "/nonexistent/libcublasLt.so.13"));
  CHECK(contains(absent, "name its libcublasLt in PTXGEN_CUBLASLT_LIBRARY"));
  CHECK(contains(refusal("libm.so.6"), "libm.so.6 lacks cublasLt"));
}

}  // namespace
}  // namespace ptxgen

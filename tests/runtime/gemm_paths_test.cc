// Matrix products by cuBLASLt: on the emulated device with a stand-in for it, on CUDA device 0 with the
// machine's own when PTXGEN_TEST_DEVICE is "cuda".
#include <cmath>
#include <limits>
#include <thread>

#include "ptxgen/environment.h"
#include "src/reference/dequantize.h"
#include "src/reference/narrow.h"
#include "tests/kernels/harness.h"
#include "tests/runtime/fake_library.h"
#include "tests/runtime/layer.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"

namespace ptxgen {
namespace {

using testing::contains;
using testing::FakeLibrary;
using testing::ok;
using testing::random_blocks;
using testing::random_values;
using testing::take;
using testing::test_device;
using testing::to_device;
using testing::to_host;
using testing::untuned;
using testing::weights_of;

constexpr GemmPath kPaths[] = {GemmPath::kSgemm, GemmPath::kHgemm, GemmPath::kDequantHgemm, GemmPath::kFp8};

// c = a W^T, summed in f64.
std::vector<float> product(const std::vector<float>& a, const std::vector<float>& w, u32 k) {
  const std::size_t m = a.size() / k, n = w.size() / k;
  std::vector<float> c(m * n);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0;
      for (u32 j = 0; j < k; ++j)
        sum += static_cast<double>(a[row * k + j]) * static_cast<double>(w[i * k + j]);
      c[row * n + i] = static_cast<float>(sum);
    }
  }
  return c;
}

// The largest difference as a part of the largest expected; infinite where one is not finite.
float apart(const std::vector<float>& actual, const std::vector<float>& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  float largest = 0, most = 0;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    if (!std::isfinite(actual[i])) return INFINITY;
    largest = std::max(largest, std::abs(expected[i]));
    most = std::max(most, std::abs(actual[i] - expected[i]));
  }
  return most == 0 ? 0 : most / largest;
}

float most_of(const std::vector<float>& values) {
  float most = 0;
  for (const float value : values) most = std::max(most, std::abs(value));
  return most;
}

// What a path makes of weights or activations: rounded to its type, with one scale.
std::vector<float> rounded(GemmPath path, std::vector<float> values, bool activations) {
  if (path == GemmPath::kSgemm) return values;
  const float most = most_of(values);
  if (path == GemmPath::kFp8) {
    const float factor = most == 0 ? 1 : std::min(448 / most, std::numeric_limits<float>::max());
    const float scale = most == 0 ? 1 : most / 448;
    for (float& value : values)
      value = reference::e4m3_to_f32(reference::f32_to_e4m3(value * factor)) * scale;
    return values;
  }
  const int exponent = activations ? std::min(14 - std::ilogb(most == 0 ? 1 : most), 126) : 0;
  for (float& value : values) {
    const float brought = std::ldexp(value, exponent);
    value = std::ldexp(reference::f16_to_f32(reference::f32_to_f16(brought)), -exponent);
  }
  return values;
}

// Of sums in f32, whose order is the library's; the stand-in sums in f64.
float bound(GemmPath path) {
  if (path == GemmPath::kSgemm || test_device().kind() == DeviceKind::kEmulator) return 1e-5f;
  return path == GemmPath::kFp8 ? 2e-3f : 2e-4f;
}

// A matrix, its values, and up to `rows` rows of activations.
struct Setup {
  Setup(u32 n_, u32 k_, u32 rows_, const ExecutorOptions& options = untuned(), Format format = Format::kQ4_K)
      : n(n_),
        k(k_),
        rows(rows_),
        cache(test_device()),
        executor(cache, library.with(options)),
        stream(take(test_device().create_stream())) {
    const std::vector<std::byte> blocks = random_blocks(format, n, k, 3);
    w.resize(std::size_t{n} * k);
    ok(reference::dequantize(format, blocks, absl::MakeSpan(w)));
    weights = weights_of(test_device(), format, n, k, blocks);
    set(random_values(std::size_t{rows} * k, 4));
    c = take(test_device().allocate(std::size_t{rows} * n * sizeof(float), "c"));
  }

  void set(std::vector<float> new_values) {
    values = std::move(new_values);
    a = to_device(test_device(), values, "a");
  }
  absl::StatusOr<GemmReport> run(GemmPath path, u32 m) {
    ok(c.fill(0xff));  // NaN
    return executor.gemm(stream, *weights, a.ptr<const f32>(), m, c.ptr<f32>(),
                         {.variant = GemmVariant{.path = path}});
  }
  std::vector<float> results(u32 m) {
    ok(stream.synchronize());
    std::vector<float> all = to_host(c);
    CHECK((std::size_t{m} * n == all.size() || std::isnan(all[std::size_t{m} * n])));
    all.resize(std::size_t{m} * n);
    return all;
  }
  // What the path makes of the first m rows.
  std::vector<float> expected(GemmPath path, u32 m) const {
    const auto end = values.begin() + static_cast<std::ptrdiff_t>(std::size_t{m} * k);
    return product(rounded(path, {values.begin(), end}, true), rounded(path, w, false), k);
  }
  std::string refusal(const absl::StatusOr<GemmReport>& report) {
    REQUIRE_FALSE(report.ok());
    return std::string(report.status().message());
  }

  const u32 n, k, rows;
  FakeLibrary library;
  KernelCache cache;
  Executor executor;
  Stream stream;
  std::vector<float> w, values;
  std::optional<WeightMatrix> weights;
  Buffer a, c;
};

// Formats whose k is a multiple of 32 alone, shapes of one part and of several.
TEST_CASE("every path of cuBLASLt has the product, for any m and n", "[runtime][gemm][paths][device]") {
  struct Case {
    u32 n, k;
    Format format;
    std::vector<u32> m;
  };
  std::vector<Case> cases = {{1, 256, Format::kQ4_K, {1, 2, 15, 16, 17, 63, 64, 65, 511}},
                             {31, 96, Format::kQ8_0, {1, 2, 15, 16, 17, 63, 64, 65, 511}},
                             {48, 512, Format::kQ6_K, {1, 2, 15, 16, 17, 63, 64, 65, 511}},
                             {4097, 256, Format::kQ4_K, {1, 2, 15, 16, 17, 63, 64, 65, 511}}};
  if (test_device().kind() == DeviceKind::kCuda) cases.back().m.push_back(2048);  // the emulator takes long
  for (const Case& shape : cases) {
    Setup setup(shape.n, shape.k, shape.m.back(), untuned(), shape.format);
    for (const GemmPath path : kPaths) {
      if (path == GemmPath::kFp8 && !test_device().target().supports({89, false})) continue;
      for (const u32 m : shape.m) {
        CAPTURE(shape.n, shape.k, m, detail::field_text(path));
        const GemmReport report = take(setup.run(path, m));
        CHECK(apart(setup.results(m), setup.expected(path, m)) < bound(path));
        CHECK(report.path == detail::field_text(path));
        CHECK(report.reason == "the call asks for it");
        CHECK(report.scratch_bytes > 0);
        CHECK_FALSE(report.kernels.empty());
      }
    }
  }
}

TEST_CASE("results may begin at any multiple of 4", "[runtime][gemm][paths][device]") {
  constexpr u32 kRows = 5, kN = 48, kK = 256;
  Setup setup(kN, kK, kRows);
  for (const GemmPath path : kPaths) {
    if (path == GemmPath::kFp8 && !test_device().target().supports({89, false})) continue;
    CAPTURE(detail::field_text(path));
    Buffer c = take(test_device().allocate((1 + kRows * kN) * sizeof(float), "c"));
    ok(c.fill(0xff));
    ok(setup.executor
           .gemm(setup.stream, *setup.weights, setup.a.ptr<const f32>(), kRows, c.ptr<f32>(4),
                 {.variant = GemmVariant{.path = path}})
           .status());
    ok(setup.stream.synchronize());
    const std::vector<float> all = to_host(c);
    CHECK(std::isnan(all[0]));
    CHECK(apart({all.begin() + 1, all.end()}, setup.expected(path, kRows)) < bound(path));
  }
}

TEST_CASE("activations of any size overflow on no path of cuBLASLt", "[runtime][gemm][paths][device]") {
  constexpr u32 kRows = 5, kN = 33, kK = 256;
  Setup setup(kN, kK, kRows);
  const std::vector<float> plain = setup.values;
  for (const GemmPath path : kPaths) {
    if (path == GemmPath::kFp8 && !test_device().target().supports({89, false})) continue;
    for (const float size : {0.f, 1e5f, 1e30f, 1e-30f, 1e-40f}) {
      CAPTURE(detail::field_text(path), size);
      std::vector<float> values = plain;
      for (float& value : values) value *= size;
      setup.set(values);
      ok(setup.run(path, kRows).status());
      const std::vector<float> results = setup.results(kRows), expected = setup.expected(path, kRows);
      if (path == GemmPath::kFp8 && size == 1e-40f) {
        // 448 / absmax is beyond f32: what is left lies below every normal number.
        for (const float value : results) CHECK(std::abs(value) < 1e-37f);
      } else {
        CHECK(apart(results, expected) < (size == 1e-40f ? 2e-3f : bound(path)));
      }
    }
    // One row of 1e5 among others.
    std::vector<float> values = plain;
    for (u32 i = 0; i < kK; ++i) values[kK + i] *= 1e5f;
    setup.set(values);
    ok(setup.run(path, kRows).status());
    CHECK(apart(setup.results(kRows), setup.expected(path, kRows)) < bound(path));
  }
}

TEST_CASE("activations prepared once serve several products by cuBLASLt", "[runtime][gemm][paths][device]") {
  constexpr u32 kRows = 20, kN = 31, kK = 256;
  for (const Activations type : {Activations::kF16Rows, Activations::kE4m3}) {
    if (type == Activations::kE4m3 && !test_device().target().supports({89, false})) continue;
    Setup setup(kN, kK, kRows);
    const GemmPath own = type == Activations::kE4m3 ? GemmPath::kFp8 : GemmPath::kHgemm;
    PreparedActivations prepared = take(setup.executor.make_activations(kK, kRows, type));
    ok(setup.executor.prepare_activations(setup.stream, setup.a.ptr<const f32, 16>(), kRows, prepared));
    const std::vector<float> expected = setup.expected(own, kRows);
    ok(setup.stream.synchronize());
    ok(setup.a.fill(0));  // what they were stays
    const auto run = [&](const WeightMatrix& weights, u32 m, const GemmCall& call = {}) {
      ok(setup.c.fill(0xff));
      return setup.executor.gemm(setup.stream, weights, prepared, m, setup.c.ptr<f32>(), call);
    };
    const GemmReport report = take(run(*setup.weights, kRows));
    CHECK(report.path == detail::field_text(own));
    CHECK(contains(report.reason, "it is what activations of type " + detail::field_text(type) + " are for"));
    CHECK(apart(setup.results(kRows), expected) < bound(own));
    // Of fewer rows the first.
    ok(run(*setup.weights, 7).status());
    CHECK(apart(setup.results(7), {expected.begin(), expected.begin() + 7 * kN}) < bound(own));
    const WeightMatrix other = testing::random_weights(test_device(), Format::kQ8_0, kN, kK, 9);
    ok(run(other, kRows).status());
    if (type == Activations::kF16Rows) {
      const GemmCall dequant = {.variant = GemmVariant{.path = GemmPath::kDequantHgemm}};
      CHECK(take(run(*setup.weights, kRows, dequant)).path == "dequant_hgemm");
      CHECK(apart(setup.results(kRows), expected) < bound(own));
    }
    CHECK(contains(
        setup.refusal(run(*setup.weights, kRows, {.variant = GemmVariant{.path = GemmPath::kSgemm}})),
        "path sgemm takes activations of type f32, and these are " + detail::field_text(type)));
    CHECK(contains(setup.refusal(run(*setup.weights, kRows, {.variant = GemmVariant{}})), "cannot have"));
    CHECK(contains(std::string(setup.executor.gemv(setup.stream, *setup.weights, prepared, setup.c.ptr<f32>())
                                   .status()
                                   .message()),
                   "prepared as " + detail::field_text(type) + ", which gemm() takes"));
  }
  Setup setup(kN, kK, 1);
  CHECK_FALSE(setup.executor.make_activations(kK, 1, Activations::kF32).ok());
  CHECK_FALSE(setup.executor.make_activations(kK, 1, Activations::kF16).ok());
  CHECK_FALSE(setup.executor.make_activations(33, 1, Activations::kE4m3).ok());
}

TEST_CASE("where no copy of the weights may be kept, they are dequantised each time",
          "[runtime][gemm][paths][device]") {
  ExecutorOptions options = untuned();
  options.copies_max_bytes = 1000;
  Setup setup(31, 256, 20, options);
  for (const GemmPath path : {GemmPath::kHgemm, GemmPath::kFp8}) {
    if (path == GemmPath::kFp8 && !test_device().target().supports({89, false})) continue;
    const GemmReport report = take(setup.run(path, 20));
    CHECK(report.path == "dequant_hgemm");
    CHECK(contains(report.reason, "the call asks for it; " + detail::field_text(path) + " cannot be had: "));
    CHECK(contains(report.reason, "is more than the budget of 1000 bytes"));
    CHECK(apart(setup.results(20), setup.expected(GemmPath::kDequantHgemm, 20)) <
          bound(GemmPath::kDequantHgemm));
  }
  CHECK(contains(
      std::string(setup.executor.prepare_weights(setup.stream, *setup.weights, GemmPath::kHgemm).message()),
      "is more than the budget"));
  const testing::ScopedVariable variable(env::kCopiesMaxBytes.name, "many");
  Executor confused(setup.cache, setup.library.with(untuned()));
  const absl::Status unread = confused.prepare_weights(setup.stream, *setup.weights, GemmPath::kHgemm);
  CHECK(contains(unread.message(), "PTXGEN_COPIES_MAX_BYTES=many"));
}

TEST_CASE("weights beyond f16 are multiplied as f32, or refused", "[runtime][gemm][paths][device]") {
  constexpr u32 kN = 17, kK = 64, kRows = 20;
  Setup setup(kN, kK, kRows, untuned(), Format::kQ8_0);
  std::vector<std::byte> blocks = random_blocks(Format::kQ8_0, kN, kK, 3);
  blocks[5 * 34] = std::byte{0xff}, blocks[5 * 34 + 1] = std::byte{0x7b};  // d = 65504
  ok(reference::dequantize(Format::kQ8_0, blocks, absl::MakeSpan(setup.w)));
  setup.weights = weights_of(test_device(), Format::kQ8_0, kN, kK, blocks);
  for (const GemmPath path : {GemmPath::kHgemm, GemmPath::kDequantHgemm}) {
    const GemmReport report = take(setup.run(path, kRows));
    CHECK(report.path == "sgemm");
    CHECK(contains(report.reason, "the weights have values beyond f16"));
    CHECK(apart(setup.results(kRows), setup.expected(GemmPath::kSgemm, kRows)) < bound(GemmPath::kSgemm));
  }
  PreparedActivations prepared = take(setup.executor.make_activations(kK, kRows, Activations::kF16Rows));
  ok(setup.executor.prepare_activations(setup.stream, setup.a.ptr<const f32, 16>(), kRows, prepared));
  CHECK(contains(
      setup.refusal(setup.executor.gemm(setup.stream, *setup.weights, prepared, kRows, setup.c.ptr<f32>())),
      "the weights have values beyond f16"));
}

TEST_CASE("prepared products by cuBLASLt are recorded, and replay as they run",
          "[runtime][gemm][paths][device]") {
  constexpr u32 kRows = 20, kN = 31, kK = 256;
  for (const GemmPath path : kPaths) {
    if (path == GemmPath::kFp8 && !test_device().target().supports({89, false})) continue;
    CAPTURE(detail::field_text(path));
    Setup setup(kN, kK, kRows);
    const auto record = [&] {
      return setup.executor.gemm(setup.stream, *setup.weights, setup.a.ptr<const f32>(), kRows,
                                 setup.c.ptr<f32>(), {.variant = GemmVariant{.path = path}});
    };
    ok(setup.stream.begin_capture());
    CHECK(contains(setup.refusal(record()), "Executor::prepare()"));
    ok(setup.stream.end_capture().status());

    const GemmShape shape = {.n = kN, .k = kK, .m = kRows};
    const std::vector<Preparation> needs = {{shape, true, GemmVariant{.path = path}}};
    for (const absl::Status& status : setup.executor.prepare(needs)) ok(status);
    if (path != GemmPath::kSgemm) {
      ok(setup.stream.begin_capture());
      CHECK(contains(setup.refusal(record()), "call Executor::prepare_weights() before begin_capture()"));
      ok(setup.stream.end_capture().status());
    }
    ok(setup.executor.prepare_weights(setup.stream, *setup.weights, path));
    const u64 compiles = setup.cache.stats().compiles + setup.cache.stats().from_disk;
    ok(setup.stream.begin_capture());
    CHECK(take(record()).path == detail::field_text(path));
    const Graph graph = take(setup.stream.end_capture());
    CHECK(setup.cache.stats().compiles + setup.cache.stats().from_disk == compiles);
    for (const float size : {1.f, 300.f}) {
      std::vector<float> values = random_values(kRows * kK, 7);
      for (float& value : values) value *= size;
      setup.values = values;
      ok(setup.a.copy_from_host(values.data(), values.size() * sizeof(float)));
      ok(setup.c.fill(0xff));
      ok(graph.launch(setup.stream));
      const std::vector<float> replayed = setup.results(kRows);
      ok(setup.run(path, kRows).status());
      CHECK(setup.results(kRows) == replayed);
      CHECK(apart(replayed, setup.expected(path, kRows)) < bound(path));
    }
    // A larger product takes its own memory: the graph's stays.
    Buffer many = to_device(test_device(), random_values(400 * kK, 8), "many");
    Buffer their_c = take(test_device().allocate(400 * kN * sizeof(float), "their c"));
    ok(setup.executor
           .gemm(setup.stream, *setup.weights, many.ptr<const f32>(), 400, their_c.ptr<f32>(),
                 {.variant = GemmVariant{.path = path}})
           .status());
    ok(setup.c.fill(0xff));
    ok(graph.launch(setup.stream));
    CHECK(apart(setup.results(kRows), setup.expected(path, kRows)) < bound(path));
  }
}

TEST_CASE("several threads share an executor's copies and scratch", "[runtime][gemm][paths][device]") {
  constexpr u32 kRows = 18, kN = 33, kK = 256, kThreads = 4;
  Setup setup(kN, kK, kRows);
  std::vector<Stream> streams;
  std::vector<Buffer> outputs;
  for (u32 i = 0; i < kThreads; ++i) {
    // Two threads a stream.
    streams.push_back(i % 2 ? test_device().borrow_stream(streams[i - 1].native())
                            : take(test_device().create_stream()));
    outputs.push_back(take(test_device().allocate(kRows * kN * sizeof(float), "c")));
  }
  std::vector<std::string> failures(kThreads);
  std::vector<std::thread> threads;
  for (u32 i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (const GemmPath path : {GemmPath::kHgemm, GemmPath::kDequantHgemm, GemmPath::kSgemm}) {
        const auto report =
            setup.executor.gemm(streams[i], *setup.weights, setup.a.ptr<const f32>(), kRows,
                                outputs[i].ptr<f32>(), {.variant = GemmVariant{.path = path}});
        absl::Status s = report.status();
        s.Update(streams[i].synchronize());
        std::vector<float> c(kRows * kN);
        s.Update(outputs[i].copy_to_host(c.data(), outputs[i].bytes()));
        if (!s.ok()) failures[i] = s.ToString();
        if (!(apart(c, setup.expected(path, kRows)) < bound(path))) failures[i] += detail::field_text(path);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) CHECK(failure == "");
}

TEST_CASE("a path that nobody asks for gives way to a kernel", "[runtime][gemm][paths][device]") {
  GemmTuneRecord record = GemmTuneRecord::of_device(test_device().properties());
  record.shape = {.n = 31, .k = 256, .m = 24};
  record.variant = {.path = GemmPath::kDequantHgemm};
  record.date = "2026-01-31";
  ExecutorOptions options = untuned();
  options.tuned->gemms = {record};
  Setup setup(31, 256, 20, options);
  const auto run = [&](Executor& executor) {
    return take(
        executor.gemm(setup.stream, *setup.weights, setup.a.ptr<const f32>(), 20, setup.c.ptr<f32>()));
  };
  CHECK(run(setup.executor).path == "dequant_hgemm");
  CHECK(apart(setup.results(20), setup.expected(GemmPath::kDequantHgemm, 20)) <
        bound(GemmPath::kDequantHgemm));

  // What f16 makes of the weights is not known while a stream is recorded.
  Executor recording(setup.cache, setup.library.with(options));
  for (const absl::Status& status : recording.prepare(std::vector<Preparation>{{GemmShape(record.shape)}}))
    ok(status);
  ok(setup.stream.begin_capture());
  const GemmReport recorded = run(recording);
  CHECK(recorded.path == "wgmma tile_m=8");
  CHECK(contains(recorded.reason, "; dequant_hgemm cannot be had: whether f16 has the values"));
  const Graph graph = take(setup.stream.end_capture());
  ok(setup.c.fill(0xff));
  ok(graph.launch(setup.stream));
  CHECK(apart(setup.results(20), setup.expected(GemmPath::kSgemm, 20)) < 3e-3f);

  options.cublaslt = "/nonexistent/libcublasLt.so.13";
  Executor without(setup.cache, options);
  CHECK(contains(run(without).reason, "dequant_hgemm cannot be had: cuBLASLt could not be opened"));
}

TEST_CASE("the cuBLASLt of this machine has what is called", "[runtime][gemm][paths]") {
  const testing::ScopedVariable variable(env::kCublasLt.name, nullptr);
  const absl::StatusOr<const internal::CublasLt*> lt = internal::open_cublaslt("");
  if (absl::IsNotFound(lt.status())) {
    WARN(lt.status());
    return;
  }
  CHECK(contains(take(lt)->name, "libcublasLt.so.1"));
  CHECK(std::string(take(lt)->cublasLtGetStatusName(internal::LtStatus::kNotSupported)) ==
        "CUBLAS_STATUS_NOT_SUPPORTED");
}

// ---- What only the stand-in can be made to do

TEST_CASE("what cuBLASLt answers decides about the path", "[runtime][gemm][paths]") {
  if (test_device().kind() != DeviceKind::kEmulator) return;
  using internal::LtStatus;
  Setup setup(32, 256, 20);
  ok(setup.run(GemmPath::kHgemm, 20).status());
  const int asked = setup.library->calls("cublasLtMatmulAlgoGetHeuristic");
  ok(setup.run(GemmPath::kHgemm, 20).status());
  CHECK(setup.library->calls("cublasLtMatmulAlgoGetHeuristic") == asked);  // once a shape

  setup.library->fail("cublasLtMatmulAlgoGetHeuristic", LtStatus::kNotSupported);
  const GemmReport other = take(setup.run(GemmPath::kFp8, 20));
  CHECK(other.path == "dequant_hgemm");
  CHECK(contains(other.reason,
                 "fp8 cannot be had: cublaslt m=20 n=32 k=256 type=e4m3: asking for an algorithm"));
  CHECK(contains(other.reason, "CUBLAS_STATUS_NOT_SUPPORTED"));
  CHECK(apart(setup.results(20), setup.expected(GemmPath::kDequantHgemm, 20)) <
        bound(GemmPath::kDequantHgemm));
  CHECK(take(setup.run(GemmPath::kFp8, 20)).path == "dequant_hgemm");  // the answer is kept
  CHECK(take(setup.run(GemmPath::kFp8, 19)).path == "fp8");

  setup.library->fail("cublasLtMatmul", static_cast<LtStatus>(14));
  CHECK(contains(setup.refusal(setup.run(GemmPath::kHgemm, 20)),
                 "cublaslt m=20 n=32 k=256 type=f16 (" + setup.library.path()));
  setup.library->fail("cublasLtMatmul", LtStatus::kAllocFailed);
  CHECK(take(setup.run(GemmPath::kSgemm, 20)).path == "wgmma tile_m=8");
  CHECK(apart(setup.results(20), setup.expected(GemmPath::kSgemm, 20)) < 3e-3f);
}

TEST_CASE("a library that cannot begin is refused, and asked again", "[runtime][gemm][paths]") {
  if (test_device().kind() != DeviceKind::kEmulator) return;
  Setup setup(32, 256, 20);
  setup.library->fail("cublasLtCreate", internal::LtStatus::kNotInitialized);
  CHECK(contains(setup.refusal(setup.run(GemmPath::kSgemm, 20)), "CUBLAS_STATUS_NOT_INITIALIZED"));
  ok(setup.run(GemmPath::kSgemm, 20).status());

  const testing::ScratchFolder folder;
  const std::filesystem::path old = folder.path() / "libcublasLt.so.11";
  std::filesystem::create_symlink(setup.library.path(), old);
  setup.library->set_version(110300);
  ExecutorOptions options = untuned();
  options.cublaslt = old.string();
  Executor executor(setup.cache, options);
  const auto refused = executor.gemm(setup.stream, *setup.weights, setup.a.ptr<const f32>(), 20,
                                     setup.c.ptr<f32>(), {.variant = GemmVariant{.path = GemmPath::kSgemm}});
  CHECK(contains(setup.refusal(refused), "is cuBLASLt 11.3.0; ptxgen needs cuBLASLt 12.0.0 or later"));
}

}  // namespace
}  // namespace ptxgen

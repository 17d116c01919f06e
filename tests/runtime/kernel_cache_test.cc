#include "ptxgen/kernel_cache.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ptxgen/kernels.h"
#include "src/runtime/ptxas.h"
#include "tests/runtime/allocations.h"
#include "tests/runtime/devices.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/status.h"

#ifdef PTXGEN_FAKE_CUDA
#include "tests/runtime/fake_driver.h"
#endif

namespace ptxgen {
namespace {

using testing::contains;
using testing::ok;
using testing::take;

namespace fs = std::filesystem;

// out[i] = factor * in[i], for i < n
struct Scale {
  u32 n = 1;
  u32 unroll = 1;  // changes the key only
  static constexpr auto fields() {
    return std::tuple(field("n", &Scale::n, "values", {1, 1u << 30}),
                      field("unroll", &Scale::unroll, "copies", {1, 8}));
  }
  struct Args {
    DevicePtr<const f32> in;
    DevicePtr<f32> out;
    f32 factor;
    static constexpr auto fields() {
      return std::tuple(input("in", &Args::in, &Scale::bytes), output("out", &Args::out, &Scale::bytes),
                        scalar("factor", &Args::factor));
    }
  };
  u64 bytes(const Args&) const { return u64{n} * sizeof(f32); }

  std::string name() const { return "scale"; }
  LaunchShape launch_shape(const Args&) const { return {.grid = (n + 63) / 64, .block = 64}; }
  void build(KernelBuilder& k) const {
    if (on_build != nullptr) (*on_build)(k);
    const auto i = k.ctaid_x() * 64u + k.tid_x();
    k.if_(i < n, [&] {
      const auto value = ld_global(k.param(&Args::in) + i);
      st_global(k.param(&Args::out) + i, value * k.param(&Args::factor));
    });
  }

  static const std::function<void(KernelBuilder&)>* on_build;
};
const std::function<void(KernelBuilder&)>* Scale::on_build = nullptr;

// Calls `f` while any Scale is built.
class OnBuild {
 public:
  explicit OnBuild(std::function<void(KernelBuilder&)> f) : f_(std::move(f)) { Scale::on_build = &f_; }
  ~OnBuild() { Scale::on_build = nullptr; }

 private:
  const std::function<void(KernelBuilder&)> f_;
};

// A descriptor whose hash says nothing.
class SameHash final : public Descriptor {
 public:
  explicit SameHash(const Scale& scale) : inner_(scale) {}
  std::size_t hash() const override { return 42; }
  bool equals(const Descriptor& other) const override {
    const auto* same = dynamic_cast<const SameHash*>(&other);
    return same != nullptr && inner_.equals(same->inner_);
  }
  std::shared_ptr<const Descriptor> clone() const override { return std::make_shared<SameHash>(*this); }
  std::string name() const override { return inner_.name(); }
  std::string text() const override { return inner_.text(); }
  absl::Status validate() const override { return inner_.validate(); }
  void build(KernelBuilder& k) const override { inner_.build(k); }
  std::size_t num_arguments() const override { return inner_.num_arguments(); }
  ArgInfos arguments(ArgValues values) const override { return inner_.arguments(values); }
  std::vector<u64> default_arguments() const override { return inner_.default_arguments(); }
  LaunchShape launch_shape(ArgValues values) const override { return inner_.launch_shape(values); }
  std::optional<TiledTensor> tensor(ArgValues values) const override { return inner_.tensor(values); }

 private:
  DescriptorOf<Scale> inner_;
};

// Neither a dump nor a cubin of the user's has a say here.
KernelCacheOptions memory_only() {
  return {.dump = "", .store = {.max_bytes = 0}};
}

Device emulated() {
  return take(Device::open({.choice = DeviceChoice::kEmulator}));
}

// Runs `f(i)` on `count` threads that start together.
void together(int count, const std::function<void(int)>& f) {
  std::atomic<int> ready = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready != count) std::this_thread::yield();
      f(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// Waits until so many have asked for what is being compiled; gives up where more than one compiles it.
void wait_for_hits(const KernelCache& cache, std::uint64_t hits) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (cache.stats().hits != hits && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
}

std::vector<fs::path> folders(const fs::path& below) {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(below)) paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

TEST_CASE("a kernel is compiled once and computes", "[runtime][cache][device]") {
  for (const Device& device : testing::all_devices()) {
    INFO(device.description());
    KernelCache cache(device, memory_only());
    for (const u32 n : {1u, 64u, 65u, 1000u}) {
      std::vector<f32> in(n), out(n);
      for (u32 i = 0; i < n; ++i) in[i] = static_cast<f32>(i) + 0.5f;
      Buffer source = take(device.allocate(n * 4, "in")), target = take(device.allocate(n * 4, "out"));
      ok(source.copy_from_host(in.data(), n * 4));

      const auto kernel = take(cache.get(Scale{.n = n}));
      ok(kernel.launch(device.default_stream(),
                       {.in = source.ptr<const f32>(), .out = target.ptr<f32>(), .factor = 3}));
      ok(target.copy_to_host(out.data(), n * 4));
      for (u32 i = 0; i < n; ++i) REQUIRE(out[i] == 3 * in[i]);
      CHECK(&take(cache.get(Scale{.n = n})).generated() == &kernel.generated());
    }
    CHECK(cache.stats().compiles == 4);
    CHECK(cache.stats().hits == 4);
  }
}

TEST_CASE("a hit builds nothing and allocates nothing", "[runtime][cache]") {
  KernelCache cache(emulated(), memory_only());
  const Scale scale = {.n = 100};
  ok(cache.get(scale).status());
  const OnBuild never([](KernelBuilder&) { FAIL("a hit built a kernel"); });
  const std::uint64_t before = testing::allocations_of_this_thread();
  bool all = true;
  for (int i = 0; i < 100; ++i) all = cache.get(scale).ok() && all;
  const std::uint64_t after = testing::allocations_of_this_thread();
  CHECK(all);
  CHECK(after == before);
  ::operator delete(::operator new(8));
  CHECK(testing::allocations_of_this_thread() > after);  // the counter counts
}

TEST_CASE("each field of a descriptor is part of its key", "[runtime][cache]") {
  KernelCache cache(emulated(), memory_only());
  const auto first = take(cache.get(Scale{.n = 8, .unroll = 1}));
  const auto second = take(cache.get(Scale{.n = 8, .unroll = 2}));
  const auto third = take(cache.get(Scale{.n = 9, .unroll = 1}));
  CHECK(cache.stats().compiles == 3);
  CHECK(&first.descriptor() != &second.descriptor());
  CHECK(first.key() == "scale n=8 unroll=1; codegen direct, sm_90a, PTX ISA 9.0, emulator, ptxgen 0.1.0");
  CHECK(third.key() != first.key());
  // By a type-erased descriptor the same kernel is found.
  CHECK(&take(cache.get(KernelType(Scale{.n = 9}))).descriptor() == &third.descriptor());
}

TEST_CASE("descriptors with one hash are told apart", "[runtime][cache]") {
  KernelCache cache(emulated(), memory_only());
  for (int round = 0; round < 2; ++round) {
    for (const u32 n : {1u, 2u, 3u}) {
      CHECK(contains(take(cache.get(SameHash({.n = n}))).key(), str_cat("scale n=", n, " ")));
    }
  }
  CHECK(cache.stats().compiles == 3);
  CHECK(cache.stats().hits == 3);
}

TEST_CASE("sixteen threads that want a cold kernel compile it once", "[runtime][cache]") {
  KernelCache cache(emulated(), memory_only());
  // The compile ends when the other fifteen wait for it.
  const OnBuild wait([&](KernelBuilder&) { wait_for_hits(cache, 15); });
  std::array<const GeneratedKernel*, 16> results = {};
  std::vector<CompiledKernel> kept;
  absl::Status status;
  std::mutex mutex;
  together(16, [&](int i) {
    const auto kernel = cache.get(Scale{.n = 77});
    const std::lock_guard lock(mutex);
    status.Update(kernel.status());
    if (!kernel.ok()) return;
    results[static_cast<std::size_t>(i)] = &kernel->generated();
    kept.push_back(*kernel);
  });
  ok(status);
  CHECK(std::count(results.begin(), results.end(), results[0]) == 16);
  CHECK(cache.stats().compiles == 1);
  CHECK(cache.stats().hits == 15);
}

TEST_CASE("a failure is shared with those who wait, and forgotten", "[runtime][cache]") {
  KernelCache cache(emulated(), memory_only());
  std::atomic<int> failures = 0;
  {
    const OnBuild wait([&](KernelBuilder& k) {
      wait_for_hits(cache, 15);
      k.mistake(SourceLocation::current(), "planted");
    });
    together(16, [&](int) {
      const absl::Status status = cache.get(Scale{.n = 5}).status();
      failures += contains(status.message(), "scale n=5 unroll=1; codegen direct") &&
                  contains(status.message(), "planted");
    });
  }
  CHECK(failures == 16);
  CHECK(cache.stats().compiles == 1);
  CHECK(cache.stats().failures == 1);
  ok(cache.get(Scale{.n = 5}).status());
  CHECK(cache.stats().compiles == 2);
  CHECK(contains(cache.get(Scale{.n = 0}).status().message(), "n"));
}

TEST_CASE("arguments are checked before a launch", "[runtime][cache]") {
  const Device device = emulated();
  KernelCache cache(device, memory_only());
  const auto kernel = take(cache.get(Scale{.n = 100}));
  const Stream stream = device.default_stream();
  CHECK(kernel.launch(stream, {.in = {0x1002}, .out = {0x1000}, .factor = 1}).message() ==
        "kernel scale n=100 unroll=1: argument in is at 0x1002; its address must be a multiple of 4");
  CHECK(kernel.launch(stream, {.in = {0x1000}, .out = {}, .factor = 1}).message() ==
        "kernel scale n=100 unroll=1: argument out is null; the kernel uses 400 bytes of it");
  const CompiledKernel& untyped = kernel;
  const std::array<u64, 2> two = {0x1000, 0x1000};
  CHECK(untyped.launch(stream, two).message() == "kernel scale: 2 arguments given; the kernel has 3");
}

TEST_CASE("a kernel outlives its cache and device handle", "[runtime][cache]") {
  std::optional<CompiledKernelOf<Scale>> kernel;
  std::optional<Buffer> buffer;
  std::optional<Stream> stream;
  {
    const Device device = emulated();
    KernelCache cache(device, memory_only());
    kernel = take(cache.get(Scale{.n = 1}));
    buffer = take(device.allocate(4));
    stream.emplace(take(device.create_stream()));
  }
  const f32 two = 2;
  f32 result = 0;
  ok(buffer->copy_from_host(&two, 4));
  ok(kernel->launch(*stream, {.in = buffer->ptr<const f32>(), .out = buffer->ptr<f32>(), .factor = 21}));
  ok(buffer->copy_to_host(&result, 4));
  CHECK(result == 42);
}

TEST_CASE("a recording thread gets warm kernels and no cold ones", "[runtime][cache][device]") {
  for (const Device& device : testing::all_devices()) {
    KernelCache cache(device, memory_only());
    const Stream stream = take(device.create_stream());
    Buffer buffer = take(device.allocate(4));
    ok(buffer.fill(0));
    ok(cache.get(Scale{.n = 1}).status());
    ok(stream.begin_capture());
    const auto warm = cache.get(Scale{.n = 1});
    const absl::Status cold = cache.get(Scale{.n = 2}).status();
    const absl::Status launched =
        warm->launch(stream, {.in = buffer.ptr<const f32>(), .out = buffer.ptr<f32>(), .factor = 2});
    ok(stream.end_capture().status());
    ok(launched);
    CHECK(absl::IsFailedPrecondition(cold));
    CHECK(contains(cold.message(), "compiling a kernel"));
    CHECK(cache.stats().compiles == 1);
  }
}

TEST_CASE("a dump has a folder a key, on hits too", "[runtime][cache][dump]") {
  const testing::ScratchFolder scratch;
  KernelCache cache(emulated(), {.dump = (scratch.path() / "first").string()});
  const auto kernel = take(cache.get(Scale{.n = 4}));
  ok(cache.get(Scale{.n = 4}).status());
  ok(cache.get(Scale{.n = 5}).status());
  ok(cache.dump_status());

  const std::vector<fs::path> first = folders(scratch.path() / "first");
  REQUIRE(first.size() == 2);
  bool found = false;
  for (const fs::path& folder : first) {
    CHECK(folder.filename().string().substr(0, 6) == "scale-");
    CHECK(testing::read_file(folder / "ptxas.log").has_value() == Ptxas::find().ok());
    CHECK_FALSE(fs::exists(folder / "error.txt"));
    const bool ours = testing::read_file(folder / "descriptor.txt") == kernel.key() + "\n";
    if (ours) CHECK(testing::read_file(folder / "kernel.ptx") == kernel.generated().ptx);
    found = found || ours;
    for (const auto& file : fs::directory_iterator(folder)) CHECK(file.path().extension() != ".tmp");
  }
  CHECK(found);

  // Asked for after the kernel was compiled, and written once.
  cache.set_dump((scratch.path() / "second").string());
  ok(cache.get(Scale{.n = 4}).status());
  REQUIRE(folders(scratch.path() / "second").size() == 1);
  const fs::path ptx = folders(scratch.path() / "second")[0] / "kernel.ptx";
  CHECK(testing::read_file(ptx) == kernel.generated().ptx);
  fs::remove(ptx);
  ok(cache.get(Scale{.n = 4}).status());
  CHECK_FALSE(fs::exists(ptx));
  cache.set_dump("");
  ok(cache.get(Scale{.n = 4}).status());
  CHECK_FALSE(fs::exists(ptx));
}

TEST_CASE("a dump that cannot be written is reported and fails nothing", "[runtime][cache][dump]") {
  const testing::ScratchFolder scratch;
  REQUIRE(testing::write_file(scratch.path() / "file", "in the way"));
  KernelCache cache(emulated(), {.dump = (scratch.path() / "file" / "dump").string()});
  ok(cache.get(Scale{.n = 4}).status());
  REQUIRE_FALSE(cache.dump_status().ok());
  CHECK(contains(cache.dump_status().message(), (scratch.path() / "file" / "dump").string()));
}

TEST_CASE("a kernel that does not compile leaves its reason in the dump", "[runtime][cache][dump]") {
  const testing::ScratchFolder scratch;
  KernelCache cache(emulated(), {.dump = scratch.path().string()});
  const absl::Status status = cache.get(Scale{.n = 4, .unroll = 9}).status();
  REQUIRE_FALSE(status.ok());
  REQUIRE(folders(scratch.path()).size() == 1);
  CHECK(testing::read_file(folders(scratch.path())[0] / "error.txt") == str_cat(status.message(), "\n"));
  CHECK_FALSE(fs::exists(folders(scratch.path())[0] / "kernel.ptx"));
}

#ifdef PTXGEN_FAKE_CUDA

TEST_CASE("sixteen threads load one module, share its failure, and try again", "[runtime][cache][fake]") {
  testing::FakeDriver driver;
  const Device device = take(driver.open());
  KernelCache cache(device, memory_only());
  driver->fail("cuLinkAddData_v2", CUDA_ERROR_OUT_OF_MEMORY);
  for (const bool fails : {true, false}) {
    const std::uint64_t hits = cache.stats().hits;
    const OnBuild wait([&](KernelBuilder&) { wait_for_hits(cache, hits + 15); });
    std::atomic<int> failures = 0;
    together(16, [&](int) {
      const absl::Status status = cache.get(Scale{.n = 3}).status();
      failures += contains(status.message(),
                           "scale n=3 unroll=1; codegen direct, sm_80, PTX ISA 8.4, driver 12.4, "
                           "ptxgen 0.1.0: compiling PTX: CUDA_ERROR_OUT_OF_MEMORY");
    });
    CHECK(failures == (fails ? 16 : 0));
  }
  CHECK(driver->jits() == 1);
  CHECK(driver->calls("cuModuleLoadDataEx") == 1);
  CHECK(cache.stats().compiles == 2);
  CHECK(cache.stats().failures == 1);
}

TEST_CASE("devices share no module, and a warm kernel launches from a fresh thread",
          "[runtime][cache][fake]") {
  testing::FakeDriver driver;
  const Device first = take(driver.open(0)), second = take(driver.open(1));
  KernelCache on_first(first, memory_only()), on_second(second, memory_only());
  const auto a = take(on_first.get(Scale{.n = 3})), b = take(on_second.get(Scale{.n = 3}));
  CHECK(driver->calls("cuModuleLoadDataEx") == 2);
  CHECK(a.key() != b.key());
  Buffer in = take(first.allocate(12)), out = take(second.allocate(12));
  const Scale::Args args = {.in = in.ptr<const f32>(), .out = out.ptr<f32>(), .factor = 2};
  CHECK_FALSE(a.launch(second.default_stream(), args).ok());
  std::thread([&] {
    ok(take(on_first.get(Scale{.n = 3})).launch(first.default_stream(), args));
    ok(take(on_second.get(Scale{.n = 3})).launch(second.default_stream(), args));
  }).join();
  CHECK(driver->launches().at(0).device == 0);
  CHECK(driver->launches().at(1).device == 1);
  CHECK(driver->launches().at(1).args.at(2).size() == 4);
  CHECK(driver->calls("cuModuleLoadDataEx") == 2);
}

TEST_CASE("the code asks for no more than the driver and device have", "[runtime][cache][fake]") {
  for (const int version : {11080, 12000, 12040, 12080, 13000}) {
    for (const testing::FakeDevice& device :
         {testing::FakeDevice{"old", 7, 5}, testing::FakeDevice{"new", 13, 0}}) {
      testing::FakeDriver driver;
      driver->set_version(version);
      driver->set_devices({device});
      KernelCache cache(take(driver.open()), memory_only());
      INFO(cache.device().description());
      ok(cache.get(Dequant{.k = 512, .n = 3}).status());
      const auto kernel = take(cache.get(Scale{.n = 3}));
      CHECK(kernel.generated().isa <= cache.device().highest_isa());
      CHECK(cache.device().target().supports(kernel.generated().target));
    }
  }
}

TEST_CASE("a refused text is in the dump with the compiler's log", "[runtime][cache][fake][dump]") {
  const testing::ScratchFolder scratch;
  testing::FakeDriver driver;
  KernelCache cache(take(driver.open()), {.dump = scratch.path().string()});
  driver->fail("cuLinkAddData_v2", CUDA_ERROR_INVALID_PTX);
  REQUIRE_FALSE(cache.get(Scale{.n = 4}).ok());
  REQUIRE(folders(scratch.path()).size() == 1);
  const fs::path folder = folders(scratch.path())[0];
  CHECK(fs::exists(folder / "kernel.ptx"));
  CHECK(contains(testing::read_file(folder / "error.txt").value(), "CUDA_ERROR_INVALID_PTX"));
  ok(cache.get(Scale{.n = 4}).status());
  CHECK_FALSE(fs::exists(folder / "error.txt"));
}

#endif

}  // namespace ptxgen

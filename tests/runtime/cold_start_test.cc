// What a process finds when it starts: kernels on disk and in packs, compiled at most once.
#include <algorithm>
#include <csignal>
#include <thread>

#include "ptxgen/gemm.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/kernels.h"
#include "src/runtime/isolate.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/stored.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/files.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::FakeDriver;
using testing::ok;
using testing::take;

// out[i] = i, and what a test says about its code and name.
struct Probe {
  u32 n = 1;
  static constexpr auto fields() { return std::tuple(field("n", &Probe::n, "values", {1, 1u << 20})); }
  struct Args {
    DevicePtr<u32> out;
    static constexpr auto fields() { return std::tuple(output("out", &Args::out, &Probe::bytes)); }
  };
  u64 bytes(const Args&) const { return u64{n} * 4; }
  std::string name() const { return entry; }
  LaunchShape launch_shape(const Args&) const { return {.grid = n, .block = 1}; }
  void build(KernelBuilder& k) const {
    const auto i = k.ctaid_x();
    st_global(k.param(&Args::out) + i, i * factor);
  }

  static inline std::string entry = "probe";
  static inline u32 factor = 1;
};

// Gives Probe another name or code for a scope.
struct ProbeIs {
  explicit ProbeIs(const std::string& entry, u32 factor = 1) { Probe::entry = entry, Probe::factor = factor; }
  ~ProbeIs() { Probe::entry = "probe", Probe::factor = 1; }
};

std::vector<KernelType> copies(u32 count) {
  std::vector<KernelType> kernels;
  for (u32 i = 1; i <= count; ++i) kernels.push_back(Copy{.vectors = i});
  return kernels;
}

StoredKernel as_stored(const KernelCache& cache, const CompiledKernel& kernel) {
  StoredKernel stored;
  stored.key = KernelKey::of_device(cache.device().properties(), "direct");
  stored.key.descriptor = kernel.descriptor().text();
  stored.ptx = kernel.generated().ptx;
  stored.image = take(cache.device().compile(stored.ptx));
  return stored;
}

Pack packed(const fs::path& folder, std::vector<StoredKernel> kernels) {
  const fs::path path = folder / "test.ptxpack";
  REQUIRE(testing::write_file(path, make_pack(kernels)));
  return take(Pack::open(path.string()));
}

std::size_t cubins(const FakeDriver& driver) {
  std::size_t count = 0;
  for (const auto& entry : fs::recursive_directory_iterator(driver.cache()))
    count += entry.path().extension() == ".cubin";
  return count;
}

}  // namespace

TEST_CASE("the second start compiles nothing", "[runtime][store][fake]") {
  FakeDriver driver;
  for (const bool first : {true, false}) {
    const Device device = take(driver.open());
    KernelCache cache(device);
    Buffer out = take(device.allocate(64));
    for (u32 n = 1; n <= 3; ++n) {
      const auto kernel = take(cache.get(Probe{.n = n}));
      CHECK(kernel.origin() == (first ? KernelOrigin::kCompiled : KernelOrigin::kDisk));
      CHECK(kernel.function().info().param_bytes == std::vector<std::uint32_t>{8});
      ok(kernel.launch(device.default_stream(), {.out = out.ptr<u32>()}));
      CHECK(driver->launches().back().entry == "probe");
    }
    CHECK(driver->jits() == 3);
    CHECK(driver->calls("cuModuleLoadDataEx") == (first ? 3 : 6));
    const KernelCacheStats stats = cache.stats();
    CHECK(stats.compiles == (first ? 3 : 0));
    CHECK(stats.from_disk == (first ? 0 : 3));
    ok(cache.store_status());
  }
  CHECK(cubins(driver) == 3);
}

TEST_CASE("an emulated device keeps nothing on disk", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  KernelCache cache(take(Device::open({.choice = DeviceChoice::kEmulator})),
                    {.store = {.directory = {.path = (scratch.path() / "cache").string()}}});
  CHECK(take(cache.get(Probe{})).origin() == KernelOrigin::kCompiled);
  CHECK_FALSE(fs::exists(scratch.path() / "cache"));
  CHECK(contains(cache.store_status().message(), "emulated device"));
}

TEST_CASE("another driver, device or kernel is compiled anew", "[runtime][store][fake]") {
  FakeDriver driver;
  const auto start = [&](int index) {
    KernelCache cache(take(driver.open(index)));
    return take(cache.get(Probe{})).origin();
  };
  CHECK(start(0) == KernelOrigin::kCompiled);
  CHECK(start(0) == KernelOrigin::kDisk);
  CHECK(start(1) == KernelOrigin::kCompiled);  // sm_89
  driver->set_version(12050);
  CHECK(start(0) == KernelOrigin::kCompiled);
  {
    const ProbeIs changed("probe", 2);  // the descriptor is the same
    CHECK(start(0) == KernelOrigin::kCompiled);
    CHECK(start(0) == KernelOrigin::kDisk);
  }
  CHECK(start(0) == KernelOrigin::kDisk);
  driver->set_version(12040);
  CHECK(start(0) == KernelOrigin::kDisk);

  // What was kept for sm_120 is nothing to sm_90.
  driver->set_version(12080);
  driver->set_devices({{"Twelve", 12, 0}, {"Nine", 9, 0}});
  CHECK(start(0) == KernelOrigin::kCompiled);
  CHECK(start(1) == KernelOrigin::kCompiled);
  CHECK(start(0) == KernelOrigin::kDisk);
  CHECK(start(1) == KernelOrigin::kDisk);

  // A driver that knows sm_120 and no sm_121 makes code for either device from the same text.
  driver->set_devices({{"Twelve", 12, 0}, {"Twelve and one", 12, 1}});
  CHECK(start(0) == KernelOrigin::kDisk);
  CHECK(start(1) == KernelOrigin::kCompiled);
  CHECK(start(0) == KernelOrigin::kDisk);
  CHECK(start(1) == KernelOrigin::kDisk);
  KernelCache cache(take(driver.open(1)));
  CHECK(contains(take(cache.get(Probe{})).key(), "codegen direct, sm_120 on 12.1, PTX ISA 8.7, driver 12.8"));
}

TEST_CASE("code that the device refuses is compiled and kept anew", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open(0));
  std::optional<KernelCache> cache(std::in_place, device);
  StoredKernel stored = as_stored(*cache, take(cache->get(Probe{})));
  for (const std::string& bytes :
       {take(take(driver.open(1)).compile(stored.ptx)).bytes, std::string("\x7f"
                                                                          "ELF of another kind\0",
                                                                          21)}) {
    CubinStore store;
    ok(store.keep(stored.key, stored.ptx, {ImageKind::kCubin, bytes, ""}));
    cache.emplace(device);
    CHECK(take(cache->get(Probe{})).origin() == KernelOrigin::kCompiled);
    ok(cache->store_status());
    cache.emplace(device);
    CHECK(take(cache->get(Probe{})).origin() == KernelOrigin::kDisk);
  }
  // A context that was lost by loading it is lost; compiling would not help.
  const int compiles = driver->calls("cuLinkCreate_v2");
  cache.emplace(device);
  driver->fail("cuModuleLoadDataEx", CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(absl::IsDataLoss(cache->get(Probe{}).status()));
  CHECK(driver->calls("cuLinkCreate_v2") == compiles);
}

TEST_CASE("a refused text is not kept, and a later one is", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  KernelCache cache(device);
  driver->fail("cuLinkAddData_v2", CUDA_ERROR_INVALID_PTX);
  const absl::Status refused = cache.get(Probe{}).status();
  CHECK(contains(refused.message(), "probe n=1; codegen direct, sm_80"));
  CHECK(contains(refused.message(), "CUDA_ERROR_INVALID_PTX"));
  CHECK(cubins(driver) == 0);
  ok(cache.get(Probe{}).status());
  CHECK(cubins(driver) == 1);
}

TEST_CASE("a driver without a linker loads the text itself", "[runtime][store][fake]") {
  for (const char* entry : {"cuLinkCreate_v2", "cuLinkAddData_v2", "cuLinkComplete"}) {
    for (const CUresult result : {CUDA_ERROR_NOT_SUPPORTED, CUDA_ERROR_UNKNOWN}) {
      FakeDriver driver;
      driver->fail(entry, result, 1000);
      KernelCache cache(take(driver.open()));
      const auto kernel = take(cache.get(Probe{}));
      CHECK(kernel.function().info().param_bytes == std::vector<std::uint32_t>{8});
      CHECK(cubins(driver) == 0);
      CHECK(contains(cache.store_status().message(), "hands out no cubins"));
    }
  }
}

TEST_CASE("code with setmaxnreg is compiled as a whole, and kept by the driver", "[runtime][store][fake]") {
  FakeDriver driver;
  driver->set_devices({{"Nine", 9, 0}});
  KernelCache cache(take(driver.open()));
  const Gemm narrow = {.format = Format::kQ4_K,
                       .k = 256,
                       .n = 128,
                       .schedule = GemmSchedule::kWgmma,
                       .a_type = Activations::kF16,
                       .tile_m = 64};
  Gemm wide = narrow;
  wide.tile_m = 256;
  ok(cache.get(wide).status());
  CHECK(driver->calls("cuLinkCreate_v2") == 0);
  CHECK(cubins(driver) == 0);
  const auto kernel = take(cache.get(narrow));
  CHECK(driver->calls("cuLinkCreate_v2") == 1);
  CHECK(cubins(driver) == 1);
  // What was linked before is no longer looked for.
  StoredKernel linked = as_stored(cache, take(cache.get(wide)));
  linked.image = take(cache.device().compile(kernel.generated().ptx));
  CHECK(linked.image.kind == ImageKind::kCubin);
  ok(CubinStore(CubinStoreOptions{}).keep(linked.key, linked.ptx, linked.image));
  CHECK(cubins(driver) == 2);
  KernelCache later(cache.device());
  CHECK(take(later.get(wide)).origin() == KernelOrigin::kCompiled);
  CHECK(take(later.get(narrow)).origin() == KernelOrigin::kDisk);
  ok(cache.store_status());
}

TEST_CASE("a cache directory that cannot be used costs the disk only", "[runtime][store][fake]") {
  FakeDriver driver;
  REQUIRE(testing::write_file(driver.cache() / "file", "in the way"));
  fs::create_directory_symlink(driver.cache(), driver.cache() / "link");
  for (const char* name : {"file", "link"}) {
    KernelCache cache(take(driver.open()),
                      {.store = {.directory = {.path = (driver.cache() / name).string()}}});
    CHECK(take(cache.get(Probe{})).origin() == KernelOrigin::kCompiled);
    ok(cache.get(Probe{}).status());
    CHECK(cache.stats().compiles == 1);
    CHECK_FALSE(cache.store_status().ok());
  }
}

TEST_CASE("many kernels are prepared at once", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  driver->set_jit_milliseconds(2);
  for (const std::uint32_t threads : {0u, 1u, 4u, 1000u}) {
    KernelCache cache(device, {.store = {.max_bytes = 0}});
    std::vector<KernelType> kernels = copies(20);
    kernels.insert(kernels.begin() + 7, KernelType(Copy{.vectors = 0}));  // below its bound
    kernels.push_back(kernels[3]);
    std::vector<std::string> seen;
    std::size_t done = 0;
    const auto caller = std::this_thread::get_id();
    const auto statuses =
        cache.prepare(kernels, {.threads = threads, .progress = [&](const auto& p) {
                                  CHECK(std::this_thread::get_id() == caller);
                                  CHECK(p.done == ++done);
                                  CHECK(p.total == kernels.size());
                                  seen.push_back(p.kernel->text());
                                  CHECK(p.origin.ok() == (p.kernel->text() != "copy vectors=0"));
                                }});
    REQUIRE(statuses.size() == kernels.size());
    for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(statuses[i].ok() == (i != 7));
    CHECK(contains(statuses[7].message(), "vectors"));
    CHECK(done == kernels.size());
    std::vector<std::string> expected;
    for (const KernelType& kernel : kernels) expected.push_back(kernel->text());
    std::sort(seen.begin(), seen.end());
    std::sort(expected.begin(), expected.end());
    CHECK(seen == expected);
    CHECK(cache.stats().compiles == 21);
    for (std::size_t i = 0; i < kernels.size(); ++i) CHECK(cache.get(kernels[i]).ok() == (i != 7));
    CHECK(cache.stats().compiles == 22);
    CHECK(cache.prepare({}).empty());
  }
}

TEST_CASE("preparing while recording refuses the cold and leaves the recording alive",
          "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  const Stream stream = take(device.create_stream());
  KernelCache cache(device);
  std::vector<KernelType> kernels = copies(3);
  ok(cache.get(kernels[1]).status());
  {
    KernelCache other(device);
    ok(other.get(kernels[2]).status());  // on disk, and yet to be loaded
  }
  ok(stream.begin_capture());
  const auto statuses = cache.prepare(kernels, {.threads = 4});
  const int loads = driver->calls("cuModuleLoadDataEx");
  ok(stream.end_capture().status());
  CHECK(absl::IsFailedPrecondition(statuses[0]));
  ok(statuses[1]);
  CHECK(absl::IsFailedPrecondition(statuses[2]));
  CHECK(contains(statuses[0].message(), "before begin_capture()"));
  CHECK(loads == 2);
  for (const absl::Status& status : cache.prepare(kernels)) ok(status);
}

TEST_CASE("a pack is asked before the disk", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device first = take(driver.open(0)), second = take(driver.open(1));
  std::vector<StoredKernel> kernels;
  for (const Device& device : {first, second}) {
    KernelCache cache(device, {.store = {.max_bytes = 0}});
    for (u32 n = 1; n <= 2; ++n) kernels.push_back(as_stored(cache, take(cache.get(Probe{.n = n}))));
  }
  kernels[0].key.compiler = "ptxas 13.0.88";
  kernels[0].key.isa = "9.0";
  const Pack pack = packed(driver.cache(), kernels);
  CHECK(pack.size() == 4);
  for (const Device& device : {first, second}) {
    const int jits = driver->jits();
    KernelCache cache(device, {.packs = {pack}});
    CHECK(take(cache.get(Probe{.n = 1})).origin() == KernelOrigin::kPack);
    CHECK(take(cache.get(Probe{.n = 2})).origin() == KernelOrigin::kPack);
    CHECK(driver->jits() == jits);
    CHECK(cache.stats().from_pack == 2);
    const ProbeIs changed("probe", 3);
    CHECK(take(cache.get(Probe{.n = 3})).origin() == KernelOrigin::kCompiled);
    KernelCache again(device, {.packs = {pack}});
    CHECK(take(again.get(Probe{.n = 1})).origin() == KernelOrigin::kCompiled);  // another text
    CHECK(take(again.get(Probe{.n = 3})).origin() == KernelOrigin::kDisk);
  }
}

TEST_CASE("foreign, damaged and text entries of a pack fall through", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open(0));
  const StoredKernel good = [&] {
    KernelCache cache(device, {.store = {.max_bytes = 0}});
    return as_stored(cache, take(cache.get(Probe{})));
  }();
  const auto origin = [&](std::vector<Pack> packs) {
    KernelCache cache(device, {.packs = std::move(packs), .store = {.max_bytes = 0}});
    return take(cache.get(Probe{})).origin();
  };
  CHECK(origin({packed(driver.cache(), {good})}) == KernelOrigin::kPack);
  for (const auto member : {&KernelKey::descriptor, &KernelKey::codegen, &KernelKey::target,
                            &KernelKey::capability, &KernelKey::library}) {
    StoredKernel foreign = good;
    foreign.key.*member += "0";
    CHECK(origin({packed(driver.cache(), {foreign})}) == KernelOrigin::kCompiled);
    // The second pack has it.
    CHECK(origin({packed(driver.cache(), {foreign}), packed(driver.cache(), {foreign, good})}) ==
          KernelOrigin::kPack);
  }
  StoredKernel text = good;
  text.image = {ImageKind::kPtx, good.ptx, ""};
  CHECK(origin({packed(driver.cache(), {text})}) == KernelOrigin::kCompiled);
  CHECK(origin({packed(driver.cache(), {text, good})}) == KernelOrigin::kPack);
  StoredKernel elsewhere = good;
  elsewhere.image = take(take(driver.open(1)).compile(good.ptx));
  CHECK(origin({packed(driver.cache(), {elsewhere})}) == KernelOrigin::kCompiled);
  CHECK(origin({packed(driver.cache(), {})}) == KernelOrigin::kCompiled);
}

TEST_CASE("a pack serves the code generator llvm where there is no LLVM", "[runtime][store][llvm][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open(0));
  const auto get = [&](std::vector<Pack> packs) {
    KernelCache cache(device, {.codegen = Codegen::kLlvm, .packs = packs, .store = {.max_bytes = 0}});
    return cache.get(Probe{});
  };
  StoredKernel code, text;
  {
    KernelCache cache(device, {.codegen = Codegen::kLlvm, .store = {.max_bytes = 0}});
    code = as_stored(cache, take(cache.get(Probe{})));
    code.key.codegen = describe(Codegen::kLlvm);
    const Kernel kernel = take(build_kernel(*KernelType(Probe{}), {.target = device.target()}));
    text = {code.key, print_llvm_ir(absl::MakeConstSpan(&kernel, 1)), {ImageKind::kPtx, code.ptx, ""}};
  }
  // Whichever LLVM made it, also where one is installed.
  StoredKernel other = text;
  other.key.codegen = "llvm 1.2.3";
  other.image.bytes += "// by another\n";
  const CompiledKernel foreign = take(get({packed(driver.cache(), {other})}));
  CHECK(foreign.generated().ptx == other.image.bytes);
  CHECK(contains(foreign.key(), "; codegen llvm 1.2.3, sm_80"));

  const testing::ScopedVariable none("PTXGEN_LLVM_LIBRARY", "/nonexistent/libLLVM.so");
  const auto refused = [&](std::vector<Pack> packs) {
    return contains(get(std::move(packs)).status().message(), "LLVM could not be opened");
  };
  CHECK(refused({}));
  CHECK(refused({packed(driver.cache(), {code})}));
  const int jits = driver->jits();
  const CompiledKernel compiled = take(get({packed(driver.cache(), {text})}));
  CHECK(compiled.origin() == KernelOrigin::kCompiled);
  CHECK(driver->jits() == jits + 1);
  CHECK(compiled.generated().ptx == code.ptx);
  CHECK(contains(compiled.key(), "; codegen " + code.key.codegen + ", sm_80"));
  CHECK(take(get({packed(driver.cache(), {text, code})})).origin() == KernelOrigin::kPack);
  CHECK(take(get({packed(driver.cache(), {code}), packed(driver.cache(), {text})})).origin() ==
        KernelOrigin::kPack);
  CHECK(driver->jits() == jits + 1);
  for (const auto member :
       {&KernelKey::descriptor, &KernelKey::target, &KernelKey::capability, &KernelKey::library}) {
    StoredKernel wrong = text;
    wrong.key.*member += "0";
    CHECK(refused({packed(driver.cache(), {wrong})}));
  }
  const ProbeIs changed("probe", 2);  // another IR of the same descriptor
  CHECK(refused({packed(driver.cache(), {text})}));
}

TEST_CASE("a damaged pack is refused, or misses", "[runtime][store]") {
  const testing::ScratchFolder scratch;
  const std::vector<StoredKernel> kernels = {testing::stored_kernel(1, 100), testing::stored_kernel(2, 100)};
  const std::string good = make_pack(kernels);
  const std::string path = (scratch.path() / "pack").string();
  const auto open = [&](const std::string& bytes) {
    REQUIRE(testing::write_file(path, bytes));
    return Pack::open(path);
  };
  const Pack whole = take(open(good));
  for (const StoredKernel& kernel : kernels)
    CHECK(whole.find(kernel.key, kernel.ptx)->bytes == kernel.image.bytes);
  for (std::size_t i = 0; i < 2; ++i) ok(whole.entry(i).status());

  for (std::size_t eighth = 0; eighth < 8; ++eighth) {
    const absl::Status cut = open(good.substr(0, good.size() * eighth / 8)).status();
    CHECK(absl::IsInvalidArgument(cut));
    CHECK(contains(cut.message(), path));
  }
  CHECK_FALSE(open(good + "x").ok());
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    const absl::StatusOr<Pack> pack = open(bad);
    INFO(at);
    if (!pack.ok()) continue;
    int missing = 0, damaged = 0;
    for (const StoredKernel& kernel : kernels) missing += !pack->find(kernel.key, kernel.ptx).has_value();
    for (std::size_t i = 0; i < 2; ++i) damaged += !pack->entry(i).ok();
    REQUIRE(missing == 1);
    REQUIRE(damaged == 1);
  }
  CHECK(absl::IsNotFound(Pack::open((scratch.path() / "nothing").string()).status()));
  CHECK_FALSE(Pack::open(scratch.path().string()).ok());
}

TEST_CASE("a text that crashes the compiler costs a process of its own", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  KernelCache cache(device, {.isolate = true});
  {
    const ProbeIs crash("crash_the_compiler");
    const absl::Status status = cache.get(Probe{}).status();
    CHECK(contains(status.message(), "in a process of its own, which was ended by signal 6"));
    ok(device.health());
  }
  CHECK(driver->jits() == 0);
  // The others are compiled there, loaded here and kept.
  CHECK(take(cache.get(Probe{.n = 2})).origin() == KernelOrigin::kCompiled);
  CHECK(driver->jits() == 0);
  CHECK(driver->calls("cuModuleLoadDataEx") == 1);
  CHECK(cubins(driver) == 1);
  KernelCache again(device, {.isolate = true});
  CHECK(take(again.get(Probe{.n = 2})).origin() == KernelOrigin::kDisk);
  for (const absl::Status& status : again.prepare(copies(8), {.threads = 4})) ok(status);
  CHECK(driver->jits() == 0);
  CHECK(cubins(driver) == 9);
}

TEST_CASE("a process of its own says what the driver says", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open(1));
  GeneratedKernel kernel = take(generate(*KernelType(Probe{}), {}));
  const std::string helper = *take(internal::isolation_helper(true, ""));
  const Image image = take(internal::compile_isolated(helper, device.properties(), kernel));
  CHECK(image.kind == ImageKind::kCubin);
  CHECK(image.bytes == take(device.compile(kernel.ptx)).bytes);
  CHECK(image.log == "info: compiled by the fake");

  GeneratedKernel wrong = kernel;
  wrong.ptx += "bogus\n";
  const absl::Status refused = internal::compile_isolated(helper, device.properties(), wrong).status();
  CHECK(refused == device.compile(wrong.ptx).status());
  wrong = kernel;
  wrong.entry = "another";
  CHECK(contains(internal::compile_isolated(helper, device.properties(), wrong).status().message(),
                 "looking for the entry another"));
  DeviceProperties elsewhere = device.properties();
  elsewhere.index = 7;
  CHECK(contains(internal::compile_isolated(helper, elsewhere, kernel).status().message(),
                 "there is no CUDA device 7"));
  elsewhere.index = 0;  // another device than this process believes
  CHECK(contains(internal::compile_isolated(helper, elsewhere, kernel).status().message(),
                 "compiles for another device"));

  wrong.ptx = kernel.ptx + "// hang_the_compiler\n" + std::string(1 << 20, ' ');
  CHECK(
      contains(internal::compile_isolated(helper, device.properties(), wrong, std::chrono::milliseconds(300))
                   .status()
                   .message(),
               "did not end in time"));
  // What is no helper.
  for (const char* program : {"/bin/true", "/bin/false", "/bin/cat"}) {
    const absl::Status status = internal::compile_isolated(program, device.properties(), kernel).status();
    CHECK(absl::IsInternal(status));
    CHECK(contains(status.message(), "ended with exit status"));
  }
  CHECK_FALSE(internal::compile_isolated("/no/such", device.properties(), kernel).ok());

  // A process that takes no interest in its children.
  const auto before = std::signal(SIGCHLD, SIG_IGN);
  ok(internal::compile_isolated(helper, device.properties(), kernel).status());
  wrong.ptx = kernel.ptx + "// crash_the_compiler\n";
  CHECK(contains(internal::compile_isolated(helper, device.properties(), wrong).status().message(),
                 "unharmed"));
  std::signal(SIGCHLD, before);
}

TEST_CASE("isolation that is asked for and cannot be had is an error", "[runtime][store][fake]") {
  FakeDriver driver;
  const Device device = take(driver.open());
  {
    KernelCache cache(device, {.isolate = true, .isolate_helper = "/no/such/helper"});
    CHECK(contains(cache.get(Probe{}).status().message(), "ptxgen-isolate is not at /no/such/helper"));
  }
  const testing::ScopedVariable variable(env::kIsolate.name, "/no/such/thing");
  KernelCache cache(device);
  CHECK(contains(cache.get(Probe{}).status().message(), "/no/such/thing"));
  KernelCache without(device, {.isolate = false});
  ok(without.get(Probe{}).status());
  const testing::ScopedVariable wrong(env::kIsolate.name, "yes");
  KernelCache confused(device, {.store = {.max_bytes = 0}});
  CHECK(contains(confused.get(Probe{}).status().message(), "PTXGEN_ISOLATE=yes: allowed is 0, 1"));
  const testing::ScopedVariable off(env::kIsolate.name, "0");
  CHECK_FALSE(take(internal::isolation_helper({}, "")).has_value());
  const testing::ScopedVariable on(env::kIsolate.name, "1");
  CHECK(take(internal::isolation_helper({}, "")).has_value());
}

}  // namespace ptxgen

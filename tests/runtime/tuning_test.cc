// Records of `ptxgen tune`, and what a policy makes of them and of other devices.
#include "ptxgen/tuning.h"

#include <filesystem>

#include "ptxgen/environment.h"
#include "ptxgen/executor.h"
#include "tests/runtime/layer.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

#ifdef PTXGEN_FAKE_CUDA
#include "tests/runtime/fake_driver.h"
#endif

namespace ptxgen {
namespace {

using testing::contains;
using testing::ok;
using testing::take;

namespace fs = std::filesystem;

DeviceProperties h200() {
  DeviceProperties device;
  device.kind = DeviceKind::kCuda;
  device.name = "NVIDIA H200";
  device.compute_major = 9;
  device.target = {90, true};
  device.highest_isa = {8, 4};
  device.driver_version = 12040;
  device.sm_count = 132;
  device.shared_bytes_per_block_optin = 227 << 10;
  return device;
}

TuneRecord record() {
  TuneRecord record = TuneRecord::of_device(h200());
  record.shape = {.format = Format::kQ6_K, .n = 4096, .k = 14336, .m = 2, .x_type = Activations::kQ8_1};
  record.variant.plan = {.ctas = 264, .row_lanes = 32, .groups = 1, .rows = 2, .stages = 3, .trigger = 1};
  record.microseconds = 12.345;
  record.date = "2026-01-31";
  return record;
}

std::string with(std::string text, std::string_view part, std::string_view other) {
  const std::size_t at = text.find(part);
  REQUIRE(at != text.npos);
  return text.replace(at, part.size(), other);
}

}  // namespace

TEST_CASE("a record is read as it is written", "[runtime][tuning]") {
  const testing::ScratchFolder scratch;
  const CacheDirectoryOptions folder = {.path = (scratch.path() / "cache").string()};
  CHECK(TuneRecords::read(folder).records.empty());
  TuneRecord kept = record();
  const fs::path path = take(keep(kept, folder));
  CHECK(path.parent_path() == fs::path(folder.path) / "tuning");
  CHECK(path.filename().string().starts_with("q6k_n4096_k14336_m2_q8_1-"));
  CHECK(testing::read_file(path) ==
        "ptxgen tuning 1\n"
        "device: NVIDIA H200\n"
        "compiler: driver 12.4\n"
        "library: " +
            kept.library +
            "\n"
            "product: format=q6k n=4096 k=14336 m=2 x_type=q8_1\n"
            "variant: stream ctas=264 row_lanes=32 groups=1 rows=2 stages=3 trigger=1\n"
            "microseconds: 12.345\n"
            "date: 2026-01-31\n");
  kept.microseconds = 11;  // takes the place of the first
  CHECK(fs::path(take(keep(kept, folder))) == path);
  TuneRecord other = kept;
  other.shape.m = 4;
  CHECK(fs::path(take(keep(other, folder))) != path);
  const TuneRecords all = TuneRecords::read(folder);
  CHECK(all.ignored.empty());
  REQUIRE(all.records.size() == 2);
  CHECK(all.records[0].to_string() == kept.to_string());
  CHECK(all.records[1].to_string() == other.to_string());
  CHECK(std::distance(fs::directory_iterator(path.parent_path()), {}) == 2);

  kept.microseconds = 0;
  CHECK_FALSE(keep(kept, folder).ok());
  kept = record(), kept.shape.k = 100;
  CHECK_FALSE(keep(kept, folder).ok());
}

TEST_CASE("a record of four rows of x counts for three where these have none", "[runtime][tuning]") {
  TuneRecord four = TuneRecord::of_device(h200());
  four.shape = {.format = Format::kQ4_K, .n = 4096, .k = 4096, .m = 4};
  four.variant.plan = {.ctas = 66, .row_lanes = 32, .groups = 4, .rows = 1, .stages = 4, .in_flight = 2};
  GemvShape three_rows = four.shape;
  three_rows.m = 3;
  const auto chosen = [&](std::vector<TuneRecord> records) {
    return take(DevicePolicy(h200(), {}, {std::move(records), {}, {}}).choose(three_rows, true));
  };
  CHECK(chosen({four}).variant == four.variant);
  CHECK(chosen({four}).rows == 4);
  TuneRecord three = four;
  three.shape = three_rows, three.variant.plan.ctas = 33;
  CHECK(chosen({four, three}).variant == three.variant);
  CHECK(chosen({four, three}).rows == 3);
}

TEST_CASE("records of matrix products are kept beside the others, and decide", "[runtime][tuning]") {
  const testing::ScratchFolder scratch;
  const CacheDirectoryOptions folder = {.path = (scratch.path() / "cache").string()};
  GemmTuneRecord gemm = GemmTuneRecord::of_device(h200());
  gemm.shape = {.format = Format::kQ4_K, .n = 14336, .k = 4096, .m = 512};
  gemm.variant = {.path = GemmPath::kHgemm};
  gemm.microseconds = 99.5;
  gemm.date = "2026-01-31";
  const fs::path path = take(keep(gemm, folder));
  CHECK(path.filename().string().starts_with("q4k_gemm_n14336_k4096_m512_f32-"));
  CHECK(contains(testing::read_file(path).value_or(""),
                 "matrix product: format=q4k n=14336 k=4096 m=512 a_type=f32\nvariant: hgemm\n"));
  GemmTuneRecord mma = gemm;
  mma.shape.m = 64, mma.variant = {.schedule = GemmSchedule::kMma, .tile_m = 32};
  ok(keep(mma, folder).status());
  ok(keep(record(), folder).status());
  TuneRecords all = TuneRecords::read(folder);
  CHECK(all.ignored.empty());
  CHECK(all.records.size() == 1);
  REQUIRE(all.gemms.size() == 2);
  CHECK(all.gemms[0].to_string() == gemm.to_string());
  CHECK(all.gemms[1].to_string() == mma.to_string());

  const DevicePolicy policy(h200(), {}, all);
  const auto choose = [&](u32 m) {
    GemmShape shape = gemm.shape;
    shape.m = m;
    return take(policy.choose(shape, true));
  };
  CHECK(choose(497).variant == gemm.variant);
  CHECK(choose(496).variant.to_string() == "wgmma tile_m=248 ctas=132");
  CHECK(choose(512).reason == "ptxgen tune measured it on 2026-01-31: 99.5 us");
  CHECK(choose(57).variant.to_string() == "mma tile_m=32 tile_n=64");
  CHECK(choose(65).variant.to_string() == "wgmma tile_m=72");
  CHECK(take(policy.choose(gemm.shape, true, GemmVariant{})).asked);

  // What rounds more, or does not fit, gives way.
  all.gemms[0].variant.path = GemmPath::kFp8;
  all.gemms[1].variant = {.schedule = GemmSchedule::kTiled, .tile_m = 64};
  const DevicePolicy wary(h200(), {}, all);
  CHECK(contains(take(wary.choose(gemm.shape, true)).reason, "it is for those who ask"));
  CHECK(contains(take(wary.choose(mma.shape, true)).reason, "a record of ptxgen tune does not fit: "));

  gemm.shape.m = 500;
  CHECK(contains(std::string(keep(gemm, folder).status().message()),
                 "m is 500; it must be 512, which stands for it"));
  GemmTuneRecord foreign = mma;
  foreign.device = "NVIDIA L4";
  CHECK(DevicePolicy(h200(), {}, {{}, {}, {foreign}}).ignored().size() == 1);
}

TEST_CASE("cuBLASLt multiplies unasked where a record has it, and nowhere else", "[runtime][tuning]") {
  const GemmShape many = {.m = 4096};
  CHECK(take(DevicePolicy(h200(), {}, {}).choose(many, true)).variant.path == GemmPath::kFused);
  GemmTuneRecord record = GemmTuneRecord::of_device(h200());
  record.shape = many;
  record.variant = {.path = GemmPath::kDequantHgemm};
  const DevicePolicy policy(h200(), {}, {{}, {}, {record}});
  const GemmChoice choice = take(policy.choose(many, true));
  CHECK(choice.variant.path == GemmPath::kDequantHgemm);
  CHECK_FALSE(choice.asked);
  CHECK(take(policy.fused(many, true)).variant.path == GemmPath::kFused);
  // The kernels of both can be compiled ahead.
  CHECK(take(kernels_of(policy, many)).size() > 5);
}

TEST_CASE("a broken record is ignored, with the reason", "[runtime][tuning]") {
  const testing::ScratchFolder scratch;
  const CacheDirectoryOptions folder = {.path = (scratch.path() / "cache").string()};
  const fs::path good = take(keep(record(), folder));
  const std::string text = record().to_string();
  const std::pair<std::string, std::string> broken[] = {
      {"", "does not begin with 'ptxgen tuning 1'"},
      {with(text, "tuning 1", "tuning 2"), "does not begin with 'ptxgen tuning 1'"},
      {text.substr(0, text.size() / 2), "it has no "},
      {with(text, "date: 2026-01-31\n", "date: 2026-01-31"), "it has no date"},
      {text + "more", "something follows its date"},
      {with(text, "format=q6k", "format=q7k"), "q7k"},
      {with(text, "k=14336", "k=14337"), "k is 14337"},
      {with(text, " m=2", ""), "m is 0"},
      {with(text, " m=2", " m=17"), "m is 17"},
      {with(text, "stream ctas", "river ctas"), "river"},
      {with(text, "ctas=264", "ctas=0x1"), "ctas"},
      {with(text, "12.345", "nan"), "microseconds is 'nan'"},
      {with(text, "12.345", "-1"), "microseconds is '-1'"},
      {with(text, "NVIDIA", std::string(5000, 'x')), "more than 4096 bytes"},
  };
  for (std::size_t i = 0; i < std::size(broken); ++i)
    REQUIRE(
        testing::write_file(good.parent_path() / ("x" + std::to_string(100 + i) + ".txt"), broken[i].first));
  const TuneRecords all = TuneRecords::read(folder);
  CHECK(all.records.size() == 1);
  REQUIRE(all.ignored.size() == std::size(broken));
  for (std::size_t i = 0; i < std::size(broken); ++i) {
    INFO(all.ignored[i]);
    CHECK(contains(all.ignored[i], "x" + std::to_string(100 + i) + ".txt: "));
    CHECK(contains(all.ignored[i], broken[i].second));
  }
}

TEST_CASE("records of other devices, drivers and libraries are ignored, with the reason",
          "[runtime][tuning]") {
  TuneRecord device = record(), driver = record(), library = record();
  device.device = "NVIDIA L4", driver.compiler = "driver 12.2", library.library = "0.0.1";
  const GemvShape shape = record().shape;
  const DevicePolicy foreign(h200(), {}, {{device, driver, library}, {}});
  CHECK(contains(take(foreign.choose(shape, true)).reason, "shipped default"));
  REQUIRE(foreign.ignored().size() == 3);
  CHECK(contains(foreign.ignored()[0], "measured with device NVIDIA L4, and this is NVIDIA H200"));
  CHECK(contains(foreign.ignored()[1], "measured with compiler driver 12.2, and this is driver 12.4"));
  CHECK(contains(foreign.ignored()[2], "measured with library version 0.0.1"));

  const DevicePolicy ours(h200(), {}, {{device, record()}, {"a.txt: broken"}});
  const GemvChoice choice = take(ours.choose(shape, true));
  CHECK(choice.variant == record().variant);
  CHECK(choice.rows == 2);
  CHECK(choice.reason == "ptxgen tune measured it on 2026-01-31: 12.345 us");
  CHECK(ours.ignored().size() == 2);
  // Another shape, and weights that the record's schedule cannot take.
  for (GemvShape other : {GemvShape{Format::kQ6_K, 4096, 14336, 1, Activations::kQ8_1},
                          GemvShape{Format::kQ5_K, 4096, 14336, 2, Activations::kQ8_1}}) {
    CHECK(contains(take(ours.choose(other, true)).reason, "shipped default"));
  }
  CHECK(contains(take(ours.choose(shape, false)).reason,
                 "a record of ptxgen tune does not fit: schedule stream"));
}

TEST_CASE("defaults are made for the device", "[runtime][tuning]") {
  const GemvShape shape = {.format = Format::kQ4_K, .n = 4096, .k = 4096};
  const auto choice = [&](const DeviceProperties& device, const GemvShape& s) {
    return take(DevicePolicy(device, {}, {}).choose(s, true));
  };
  CHECK(choice(h200(), shape).variant == GemvVariant{});
  CHECK(choice(h200(), shape).reason == "shipped default, measured on such a device");

  DeviceProperties other = h200();
  other.sm_count = 78;
  CHECK(choice(other, shape).variant.plan.ctas == 78);
  CHECK(contains(choice(other, shape).reason, "scaled to the 78 of this device"));
  GemvShape few = shape;
  few.n = 50;
  CHECK(choice(other, few).variant.plan.ctas == 50);
  FusedGemv qkv = {.n_b = 1024, .n_c = 1024};
  CHECK(take(DevicePolicy(other, {}, {}).plan(qkv, true)).plan.ctas == 78);
  CHECK(take(DevicePolicy(h200(), {}, {}).plan(qkv, true)).plan.ctas == 0);

  // A CTA of sm_120 has 99 KiB of shared memory.
  DeviceProperties consumer = h200();
  consumer.sm_count = 132;
  consumer.target = {120, false};
  consumer.shared_bytes_per_block_optin = 60 << 10;
  const GemvChoice smaller = choice(consumer, shape);
  CHECK(smaller.variant.schedule == Schedule::kStream);
  CHECK(smaller.variant.plan.stages > 0);
  CHECK(smaller.variant.plan.stages < planned(Gemv{}).plan.stages);
  const KernelType kernel = kernel_of(shape, smaller.variant);
  ok(kernel->validate());
  CHECK(kernel->launch_shape(kernel->default_arguments()).dynamic_shared_bytes <= 60 << 10);

  // Rows too long for stream.
  const GemvChoice rows = choice(h200(), {.n = 8, .k = 1 << 20});
  CHECK(rows.variant.schedule == Schedule::kMultiWarp);
  CHECK(contains(rows.reason, "stream does not fit: k is 1048576"));
}

TEST_CASE("several rows of x get the schedule that is fastest where it can run", "[runtime][tuning]") {
  const auto device = [](Target target, u32 sms) {
    return DeviceProperties::of(target, DeviceKind::kCuda, sms);
  };
  struct Case {
    DeviceProperties device;
    u32 m;
    Schedule schedule;
    u32 rows;
  };
  const std::vector<Case> cases = {
      {h200(), 4, Schedule::kStream, 4},
      {h200(), 5, Schedule::kMma, 8},
      {h200(), 16, Schedule::kMma, 16},
      {h200(), 40, Schedule::kMma, 16},
      {device({80, false}, 108), 1, Schedule::kHalfWarpDp4a, 1},
      {device({80, false}, 108), 2, Schedule::kMmaDirect, 2},
      {device({89, false}, 128), 16, Schedule::kMmaDirect, 16},
      {device({75, false}, 40), 16, Schedule::kHalfWarpDp4a, 1},
      {device({120, false}, 170), 16, Schedule::kMma, 8},  // whose activations fill its shared memory
  };
  for (const Case& c : cases) {
    const GemvShape shape = {.format = Format::kQ4_K, .n = 4096, .k = 4096, .m = c.m};
    const GemvChoice choice = take(DevicePolicy(c.device, {}, {}).choose(shape, true));
    INFO(c.device.target.to_string() << ", m = " << c.m << ": " << choice.reason);
    CHECK(choice.variant.schedule == c.schedule);
    CHECK(choice.rows == c.rows);
    GemvShape rows = shape;
    rows.m = choice.rows;
    const KernelType kernel = kernel_of(rows, choice.variant);
    ok(kernel->validate());
    const LaunchShape launch = kernel->launch_shape(kernel->default_arguments());
    CHECK(launch.dynamic_shared_bytes <= c.device.shared_bytes_per_block_optin);
    if (c.device.sm_count != kMeasuredSmCount && takes_rows(c.schedule)) {
      CHECK(choice.variant.plan.ctas ==
            std::min(c.device.sm_count * (c.schedule == Schedule::kMmaDirect ? 2 : 1), 256u));
    }
  }
  // Weights that lie anywhere.
  const GemvShape shape = {.format = Format::kQ6_K, .n = 64, .k = 512, .m = 16};
  const GemvChoice choice = take(DevicePolicy(h200(), {}, {}).choose(shape, false));
  CHECK(choice.variant.schedule == Schedule::kHalfWarpDp4a);
  CHECK(contains(choice.reason, "schedule mma needs weights at a multiple of 16 bytes"));
}

TEST_CASE("a variant's constants belong to its schedule", "[runtime][tuning]") {
  const auto message = [](std::string_view text) {
    const absl::StatusOr<GemvVariant> variant = GemvVariant::parse(text);
    REQUIRE_FALSE(variant.ok());
    return std::string(variant.status().message());
  };
  CHECK(contains(message("stream columns=8"), "columns, warps or chunk given with schedule stream"));
  CHECK(contains(message("mma num_warps=8"), "given with schedule mma"));
  CHECK(contains(message("warp ctas=8"), "a plan (ctas, stages ...) given with schedule warp"));
  CHECK(contains(message("wgmma"), "choose one of warp"));
  CHECK(take(GemvVariant::parse("mma_direct ctas=8 columns=16")).to_string() ==
        "mma_direct ctas=8 columns=16");
}

TEST_CASE("rows of int8 activations that are no multiple of 16 bytes go where they may",
          "[runtime][tuning]") {
  // So long that a kernel takes one row of x.
  const DevicePolicy policy(h200(), {}, {});
  GemvShape shape = {.format = Format::kQ8_0, .n = 64, .k = 32 * 1001, .m = 2, .x_type = Activations::kQ8_1};
  const GemvChoice choice = take(policy.choose(shape, true));
  INFO(choice.reason);
  if (choice.rows == 1) CHECK(choice.variant.schedule != Schedule::kStream);
}

#ifdef PTXGEN_FAKE_CUDA

TEST_CASE("kernels that wait are launched before their predecessor has ended", "[runtime][executor][fake]") {
  for (const auto& [major, wanted] : {std::pair(9, true), {9, false}, {8, true}}) {
    testing::FakeDriver driver;
    driver->set_devices({{"device", major, 0}});
    const Device device = take(driver.open());
    KernelCache cache(device);
    ExecutorOptions options;
    options.programmatic_dependent_launch = wanted;
    Executor executor(cache, options);
    const WeightMatrix w = testing::random_weights(device, Format::kQ4_K, 300, 512, 1);
    const Buffer x = testing::to_device(device, testing::random_values(512, 2), "x");
    Buffer y = take(device.allocate(300 * 4));
    PreparedActivations prepared = take(executor.make_activations(512, 1));
    const Stream stream = device.default_stream();
    ok(executor.prepare_activations(stream, x.ptr<const f32, 16>(), 1, prepared));
    ok(executor.gemv(stream, w, prepared, y.ptr<f32>()).status());
    ok(executor.gemv(stream, w, x.ptr<const f32>(), y.ptr<f32>(), {.variant = GemvVariant{Schedule::kWarp}})
           .status());
    REQUIRE(driver->launches().size() == 3);
    for (const testing::FakeLaunch& launch : driver->launches())
      CHECK(launch.programmatic == (wanted && major == 9));
    if (major == 9) CHECK(driver->launches()[1].grid_x == 108);  // its SMs
    CHECK_FALSE(take(cache.get(Copy{})).generated().waits_for_predecessor);

    // A second cache finds the machine code on the disk, and knows it still.
    KernelCache again(device);
    const CompiledKernel kernel = take(again.get(Gemv{.k = 512, .n = 300, .schedule = Schedule::kWarp}));
    CHECK(kernel.origin() == KernelOrigin::kDisk);
    CHECK(kernel.generated().waits_for_predecessor == (major == 9));
  }
}

TEST_CASE("an executor reads the records beside its cache", "[runtime][executor][fake]") {
  testing::FakeDriver driver;
  driver->set_devices({{"NVIDIA H200", 9, 0}});
  const Device device = take(driver.open());
  KernelCache cache(device);
  TuneRecord record = TuneRecord::of_device(device.properties());
  record.shape = {.format = Format::kQ4_K, .n = 300, .k = 512};
  record.variant = {.schedule = Schedule::kMultiWarp, .num_warps = 2};
  record.microseconds = 3, record.date = "2026-01-31";
  take(keep(record));
  Executor executor(cache);
  const WeightMatrix w = testing::random_weights(device, Format::kQ4_K, 300, 512, 1);
  const Buffer x = testing::to_device(device, testing::random_values(512, 2), "x");
  Buffer y = take(device.allocate(300 * 4));
  const GemvReport report = take(executor.gemv(device.default_stream(), w, x.ptr<const f32>(), y.ptr<f32>()));
  CHECK(report.path == "multi_warp num_warps=2");
  CHECK(contains(report.reason, "ptxgen tune measured it"));
}

#endif

}  // namespace ptxgen

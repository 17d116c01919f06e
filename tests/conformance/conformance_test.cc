// The emulator against a real GPU. The results of an NVIDIA H200 are kept in tests/data/conformance; a run on
// a CUDA device (PTXGEN_TEST_DEVICE=cuda) compares with that device and, with PTXGEN_CONFORMANCE_OUT=FOLDER,
// writes its results there.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>

#include "absl/strings/escaping.h"
#include "ptxgen/strings.h"
#include "tests/conformance/bounds.h"
#include "tests/conformance/results.h"
#include "tests/conformance/run.h"
#include "tests/support/catch.h"
#include "tests/support/data.h"
#include "tests/support/files.h"
#include "tests/support/ptxas.h"
#include "tests/support/status.h"

namespace ptxgen::testing {
namespace {

std::string hex_of(absl::Span<const std::byte> bytes) {
  return absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

absl::Span<const std::byte> of_thread(absl::Span<const std::byte> all, std::size_t thread,
                                      std::size_t bytes) {
  return all.subspan(thread * bytes, bytes);
}

// The threads whose results differ: of `expected`, a GPU's, and `run`, the emulator's.
std::vector<std::size_t> differing(const ConformanceCase& c, absl::Span<const std::byte> expected,
                                   const CaseRun& run) {
  std::vector<std::size_t> threads;
  for (std::size_t i = 0; i < c.threads; ++i) {
    const auto input = of_thread(run.input, i, c.input_bytes);
    const auto a = of_thread(expected, i, c.output_bytes),
               b = of_thread(absl::MakeConstSpan(run.output), i, c.output_bytes);
    if (!(c.approximate ? agree(c, input, a, b) : a == b)) threads.push_back(i);
  }
  return threads;
}

// Bytes as they lie in memory, each thread's.
std::string describe(const ConformanceCase& c, absl::Span<const std::byte> expected, const CaseRun& run,
                     const std::vector<std::size_t>& threads) {
  constexpr std::size_t kShown = 12;
  std::string text = str_cat(c.name, ": ", threads.size(), " of ", c.threads, " threads differ\n");
  for (std::size_t i = 0; i < std::min(threads.size(), kShown); ++i) {
    const std::size_t t = threads[i * threads.size() / std::min(threads.size(), kShown)];
    str_append(&text, "  thread ", t, " in ", hex_of(of_thread(run.input, t, c.input_bytes)), " gpu ",
               hex_of(of_thread(expected, t, c.output_bytes)), " emulator ",
               hex_of(of_thread(absl::MakeConstSpan(run.output), t, c.output_bytes)), "\n");
  }
  return text;
}

Device open(DeviceChoice choice) {
  DeviceOptions options;
  options.choice = choice;
  return take(Device::open(options));
}

std::string file_of(std::string_view chapter) {
  return str_cat(chapter, ".results");
}

// What the record says against the emulator's run; empty when they agree.
std::string compare(const ConformanceCase& c, const RecordedResults& recorded, const CaseRun& run) {
  if (hash_of(run.input) != recorded.input_hash)
    return c.name + ": has other operands than were recorded; record it again\n";
  if (recorded.verbatim) {
    if (recorded.data.size() != run.output.size()) return c.name + ": has other results than were recorded\n";
    const std::vector<std::size_t> threads = differing(c, recorded.data, run);
    return threads.empty() ? "" : describe(c, recorded.data, run, threads);
  }
  const RecordedResults ours = record(c, run.input, run.output);
  std::string text;
  for (std::size_t block = 0; block < std::min(ours.data.size(), recorded.data.size()) / 4; ++block) {
    if (std::equal(&ours.data[4 * block], &ours.data[4 * block] + 4, &recorded.data[4 * block])) continue;
    str_append(&text, text.empty() ? c.name + ": other results than a GPU's in threads " : ", ",
               block * kBlock, "-", block * kBlock + kBlock - 1);
  }
  if (ours.data.size() != recorded.data.size())
    str_append(&text, c.name, ": another number of results than recorded");
  return text.empty() ? text : text + "\n";
}

}  // namespace

TEST_CASE("every row of the instruction table is measured, or a reason says why not", "[conformance]") {
  std::set<Op> rows;
  std::set<std::string> names;
  for (const ConformanceCase& c : conformance_cases()) {
    rows.insert(c.op);
    INFO(c.name);
    CHECK(names.insert(c.name).second);
    CHECK(c.threads % ConformanceCase::kCta == 0);
    CHECK(c.output_bytes > 0);
    if (c.approximate) CHECK(has_bound(c));
  }
  for (u32 i = 0; i < kNumRows; ++i) {
    INFO(row(static_cast<Op>(i)).id);
    CHECK(rows.contains(static_cast<Op>(i)) == exempt(static_cast<Op>(i)).empty());
  }
}

TEST_CASE("ptxas takes every conformance case", "[conformance][ptxas]") {
  std::vector<PtxasJob> jobs;
  for (const auto& cases : in_modules(conformance_cases(), 256))
    jobs.push_back({conformance_module(cases), {90, true}});
  for (const PtxasReport& report : assemble_all(jobs)) {
    INFO(report.log.substr(0, 4000));
    CHECK(report.ok);
  }
}

TEST_CASE("a record survives its file, and a wrong bit is found and placed", "[conformance]") {
  const auto with_name = [](std::string_view name) {
    const auto& all = conformance_cases();
    return *std::find_if(all.begin(), all.end(), [&](const ConformanceCase& c) { return c.name == name; });
  };
  const std::array cases = {with_name("fma_rn.f32"), with_name("ex2_approx.f32"),
                            with_name("mma_m16n8k16_f16_f32.f16")};
  const Device emulator = open(DeviceChoice::kEmulator);
  std::vector<CaseRun> runs = take(run_cases(emulator, cases));
  RecordedFile file;
  for (std::size_t i = 0; i < cases.size(); ++i)
    file[cases[i].name] = record(cases[i], runs[i].input, runs[i].output);
  const ScratchFolder folder;
  REQUIRE(write_results(folder.path() / "a.results", file));
  const RecordedFile read = take(read_results(folder.path() / "a.results"));
  REQUIRE(read.size() == cases.size());
  for (std::size_t i = 0; i < cases.size(); ++i) {
    INFO(cases[i].name);
    CHECK(compare(cases[i], read.at(cases[i].name), runs[i]) == "");
    runs[i].output[std::size_t{cases[i].output_bytes} * 300 + 3] ^= std::byte{0x10};
    const std::string difference = compare(cases[i], read.at(cases[i].name), runs[i]);
    CHECK(contains(difference, read.at(cases[i].name).verbatim ? "  thread 300 in " : "in threads 256-383"));
    runs[i].input[0] ^= std::byte{1};
    CHECK(contains(compare(cases[i], read.at(cases[i].name), runs[i]),
                   "has other operands than were recorded"));
  }
  const std::string whole = *read_file(folder.path() / "a.results");
  REQUIRE(write_file(folder.path() / "b.results", whole.substr(0, whole.size() - 1)));
  CHECK_FALSE(read_results(folder.path() / "b.results").ok());
}

TEST_CASE("approximations agree within their bounds", "[conformance]") {
  ConformanceCase c;
  c.output_bytes = 4;
  c.input_bytes = 8;
  const auto agrees = [&](Op op, Type type, float x, float a, float b) {
    c.op = op;
    c.type = type;
    const std::array<float, 2> input = {x, 0};
    return agree(c, absl::MakeConstSpan(reinterpret_cast<const std::byte*>(input.data()), 8),
                 absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&a), 4),
                 absl::MakeConstSpan(reinterpret_cast<const std::byte*>(&b), 4));
  };
  const float infinity = std::numeric_limits<float>::infinity(),
              nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(agrees(Op::rcp_approx, Type::kF32, 3, 0x1.555556p-2f, 0x1.555554p-2f));
  CHECK_FALSE(agrees(Op::rcp_approx, Type::kF32, 3, 0x1.555556p-2f, 0x1.555552p-2f));
  CHECK_FALSE(agrees(Op::rcp_approx, Type::kF32, 0, infinity, 0x1p127f));
  CHECK_FALSE(agrees(Op::rcp_approx, Type::kF32, 0, infinity, -infinity));
  CHECK(agrees(Op::rcp_approx, Type::kF32, nan, nan, -nan));
  CHECK_FALSE(agrees(Op::rcp_approx, Type::kF32, nan, nan, 0));
  CHECK(agrees(Op::sin_approx, Type::kF32, 1, 0.5f, 0.5f + 0x1p-21f));
  CHECK_FALSE(agrees(Op::sin_approx, Type::kF32, 1, 0.5f, 0.5f + 0x1p-20f));
  CHECK(agrees(Op::sin_approx, Type::kF32, 1000, 0.5f, 0.75f));  // outside what the ISA bounds
}

TEST_CASE("the emulator computes what an H200 has computed", "[conformance]") {
  const Device emulator = open(DeviceChoice::kEmulator);
  std::map<std::string, RecordedFile> files;
  // Cases newer than the last run on a GPU, one name a line.
  const std::string unmeasured = read_file(data_path("conformance/unmeasured.txt")).value_or("");
  for (const auto& cases : in_modules(conformance_cases())) {
    const std::vector<CaseRun> runs = take(run_cases(emulator, cases));
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const ConformanceCase& c = cases[i];
      if (!files.contains(c.chapter)) {
        files[c.chapter] =
            read_results(data_path("conformance/" + file_of(c.chapter))).value_or(RecordedFile{});
      }
      const auto recorded = files[c.chapter].find(c.name);
      if (recorded == files[c.chapter].end()) {
        INFO(c.name << " has no result of a GPU; docs/emulator.md tells how to record it");
        CHECK(("\n" + unmeasured).find("\n" + c.name + "\n") != std::string::npos);
        continue;
      }
      const std::string difference = compare(c, recorded->second, runs[i]);
      INFO(c.entry);
      CHECK(difference == "");
    }
  }
}

// Hidden, since it needs a GPU: docs/emulator.md has the command.
TEST_CASE("the emulator computes what this GPU computes", "[.gpu]") {
  const Device cuda = open(DeviceChoice::kCuda), emulator = open(DeviceChoice::kEmulator);
  std::map<std::string, RecordedFile> files;
  std::string differences;
  for (const auto& cases : in_modules(conformance_cases())) {
    const std::vector<CaseRun> ours = take(run_cases(emulator, cases));
    const absl::StatusOr<std::vector<CaseRun>> theirs = run_cases(cuda, cases);
    if (!theirs.ok()) {
      str_append(&differences, cases[0].name, " and those after it: ", theirs.status().message(), "\n");
      continue;
    }
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const ConformanceCase& c = cases[i];
      const absl::Span<const std::byte> output = (*theirs)[i].output;
      files[c.chapter][c.name] = record(c, ours[i].input, output);
      const std::vector<std::size_t> threads = differing(c, output, ours[i]);
      if (!threads.empty()) differences += describe(c, output, ours[i], threads);
    }
  }
  if (const char* folder = std::getenv("PTXGEN_CONFORMANCE_OUT")) {
    for (const auto& [chapter, file] : files) {
      CHECK(write_results(std::filesystem::path(folder) / file_of(chapter), file));
    }
    CHECK(write_file(std::filesystem::path(folder) / "device.txt", cuda.description() + "\n"));
    CHECK(write_file(std::filesystem::path(folder) / "differences.txt", differences));
  }
  CHECK(differences == "");
}

}  // namespace ptxgen::testing

#include "tests/support/ptxas.h"

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ptxgen;
using namespace ptxgen::testing;

namespace {

constexpr Target kSm75 = {75, false};
constexpr Target kSm90a = {90, true};

// Two entries; the second has `shared_bytes` of static shared memory.
std::string two_entries(unsigned shared_bytes) {
  return absl::StrCat(
      ".version 6.3\n.target sm_75\n.address_size 64\n"
      ".visible .entry plain(.param .u64 p)\n{\n"
      ".reg .b64 %rd<2>; .reg .b32 %r<2>;\n"
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nst.global.u32 [%rd1], %r1;\nret;\n}\n"
      ".visible .entry staged(.param .u64 p)\n{\n"
      ".reg .b64 %rd<2>; .reg .b32 %r<3>;\n.shared .align 4 .b8 stage[",
      shared_bytes,
      "];\n"
      "ld.param.u64 %rd1, [p];\nmov.u32 %r1, %tid.x;\nst.shared.u32 [stage], %r1;\nbar.sync 0;\n"
      "ld.shared.u32 %r2, [stage];\nst.global.u32 [%rd1], %r2;\nret;\n}\n");
}

// `live` loaded values that are all needed at once, under a cap of 24 registers a thread.
std::string crowded(int live) {
  std::string ptx = absl::StrCat(
      ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry crowded(.param .u64 p)\n.maxnreg "
      "24\n{\n"
      ".reg .b64 %rd<2>; .reg .b32 %r<",
      live, ">;\nld.param.u64 %rd1, [p];\n");
  for (int i = 0; i < live; ++i)
    absl::StrAppend(&ptx, "ld.volatile.global.u32 %r", i, ", [%rd1+", 4 * i, "];\n");
  for (int i = live - 1; i >= 0; --i)
    absl::StrAppend(&ptx, "st.volatile.global.u32 [%rd1+", 4 * i, "], %r", i, ";\n");
  return ptx + "ret;\n}\n";
}

// Assembles without a memory: these tests are about what ptxas and its reader say now.
PtxasReport assemble_afresh(std::string_view ptx, Target target) {
  const ScratchFolder folder;
  return PtxasHarness(Ptxas::find(), folder.path()).assemble(ptx, target);
}

std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
  return files;
}

}  // namespace

TEST_CASE("ptxas reports each entry of good PTX") {
  const PtxasReport report = assemble_afresh(two_entries(1024), kSm75);
  INFO(report.log);
  REQUIRE(report.ok);
  REQUIRE(report.entries.size() == 2);
  const PtxasEntry* plain = report.find("plain");
  const PtxasEntry* staged = report.find("staged");
  REQUIRE(plain != nullptr);
  REQUIRE(staged != nullptr);
  CHECK(report.find("absent") == nullptr);
  CHECK(plain->registers > 0);
  CHECK(plain->shared_bytes == 0);
  CHECK(plain->barriers == 0);
  CHECK(staged->registers > 0);
  CHECK(staged->shared_bytes == 1024);
  CHECK(staged->barriers == 1);
  CHECK_FALSE(report.spills());
  CHECK(plain->stack_bytes == 0);
  CHECK_FALSE(absl::StrContains(report.log, "Compile time"));
}

TEST_CASE("ptxas reports spills") {
  const PtxasReport report = assemble_afresh(crowded(64), kSm75);
  INFO(report.log);
  REQUIRE(report.ok);
  REQUIRE(report.entries.size() == 1);
  CHECK(report.entries[0].registers == 24);
  CHECK(report.entries[0].spill_store_bytes > 0);
  CHECK(report.entries[0].spill_load_bytes > 0);
  CHECK(report.entries[0].stack_bytes >= report.entries[0].spill_store_bytes);
  CHECK(report.spills());
}

TEST_CASE("ptxas refuses bad PTX with the line in the log") {
  const PtxasReport report = assemble_afresh(
      ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry e()\n{\nretire;\n}\n", kSm75);
  CHECK_FALSE(report.ok);
  CHECK(report.entries.empty());
  CAPTURE(report.log);
  CHECK(absl::StartsWith(report.log, "ptxas ptx, line 6;"));
}

TEST_CASE("ptxas names the requirement of a target or version too low") {
  const std::string for_sm90 =
      ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry e()\n{\nret;\n}\n";
  CHECK(assemble_afresh(for_sm90, kSm90a).ok);
  const PtxasReport too_old = assemble_afresh(for_sm90, kSm75);
  CHECK_FALSE(too_old.ok);
  CAPTURE(too_old.log);
  CHECK(absl::StrContains(too_old.log, "SM version specified by .target is higher"));
}

TEST_CASE("a ptxas log is read entry by entry") {
  // As ptxas 13.0 prints it; a .func has properties, and no registers, of its own.
  const std::vector<PtxasEntry> entries = parse_ptxas_log(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_90a'\n"
      "ptxas info    : Function properties for first\n"
      "    48 bytes stack frame, 44 bytes spill stores, 88 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 16 barriers, 48 bytes cumulative stack size, 40960 bytes "
      "smem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_90a'\n"
      "ptxas info    : Function properties for second\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 9 registers, 396 bytes cmem[0]\n"
      "ptxas info    : Function properties for helper\n"
      "    8 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n");
  REQUIRE(entries.size() == 2);
  CHECK(entries[0].name == "first");
  CHECK(entries[0].registers == 168);
  CHECK(entries[0].barriers == 16);
  CHECK(entries[0].shared_bytes == 40960);
  CHECK(entries[0].stack_bytes == 48);
  CHECK(entries[0].spill_store_bytes == 44);
  CHECK(entries[0].spill_load_bytes == 88);
  CHECK(entries[1].name == "second");
  CHECK(entries[1].registers == 9);
  CHECK(entries[1].barriers == 0);
  CHECK(entries[1].stack_bytes == 0);
  CHECK_FALSE(entries[1].spills());
  CHECK(parse_ptxas_log("").empty());
}

TEST_CASE("a verdict is remembered by text and target") {
  const ScratchFolder folder;
  PtxasHarness harness(Ptxas::find(), folder.path());
  const PtxasReport first = harness.assemble(two_entries(512), kSm75);
  REQUIRE(first.ok);
  CHECK(harness.runs() == 1);
  const PtxasReport second = harness.assemble(two_entries(512), kSm75);
  CHECK(harness.runs() == 1);
  CHECK(harness.hits() == 1);
  CHECK(second.ok);
  CHECK(second.log == first.log);
  REQUIRE(second.find("staged") != nullptr);
  CHECK(second.find("staged")->shared_bytes == 512);

  CHECK(harness.assemble(two_entries(513), kSm75).ok);
  CHECK(harness.assemble(two_entries(512), kSm90a).ok);
  CHECK(harness.runs() == 3);

  const PtxasReport refused = harness.assemble("nonsense", kSm75);
  CHECK_FALSE(refused.ok);
  PtxasHarness next_process(Ptxas::find(), folder.path());
  CHECK(next_process.assemble("nonsense", kSm75).log == refused.log);
  CHECK(next_process.assemble(two_entries(512), kSm90a).ok);
  CHECK(next_process.runs() == 0);
  CHECK(next_process.hits() == 2);
}

TEST_CASE("a damaged verdict is a miss, and is replaced") {
  const ScratchFolder folder;
  PtxasHarness harness(Ptxas::find(), folder.path());
  REQUIRE(harness.assemble(two_entries(256), kSm75).ok);
  REQUIRE(files_in(folder.path()).size() == 1);
  const std::filesystem::path file = files_in(folder.path())[0];
  const std::string good = read_file(file).value();

  std::vector<std::string> damaged = {"", "\n", good.substr(0, good.size() / 2), good.substr(0, 64),
                                      good + " "};
  damaged.push_back(good);
  damaged.back()[good.find("accepted")] ^= 1;
  damaged.push_back(good);
  damaged.back()[good.find("256 bytes")] = '9';
  std::uint64_t runs = 1;
  for (const std::string& content : damaged) {
    CAPTURE(content);
    REQUIRE(write_file(file, content));
    CHECK(harness.assemble(two_entries(256), kSm75).ok);
    CHECK(harness.runs() == ++runs);
    CHECK(read_file(file) == good);
  }

  // A whole verdict under another's name.
  REQUIRE(harness.assemble("nonsense", kSm75).ok == false);
  for (const std::filesystem::path& other : files_in(folder.path())) REQUIRE(write_file(other, good));
  CHECK_FALSE(harness.assemble("nonsense", kSm75).ok);
}

TEST_CASE("a verdict folder that cannot be written costs the memory, not the verdict") {
  const ScratchFolder folder;
  REQUIRE(write_file(folder.path() / "file", "in the way\n"));
  PtxasHarness harness(Ptxas::find(), folder.path() / "file");
  CHECK(harness.assemble(two_entries(128), kSm75).ok);
  CHECK(harness.assemble(two_entries(128), kSm75).ok);
  CHECK(harness.runs() == 2);
}

TEST_CASE("many texts are assembled in parallel, each answer in its place") {
  const ScratchFolder folder;
  PtxasHarness harness(Ptxas::find(), folder.path());
  std::vector<PtxasJob> jobs;
  for (unsigned i = 0; i < 24; ++i)
    jobs.push_back({two_entries(64 + 4 * i), kTargets[i % kTargets.size()].target});
  jobs[7].ptx = "nonsense";
  const std::vector<PtxasReport> reports = harness.assemble_all(jobs);
  REQUIRE(reports.size() == jobs.size());
  CHECK(harness.runs() == jobs.size());
  for (unsigned i = 0; i < jobs.size(); ++i) {
    CAPTURE(i, reports[i].log);
    CHECK(reports[i].ok == (i != 7));
    if (i != 7) CHECK(reports[i].find("staged")->shared_bytes >= 64 + 4 * i);
    if (i != 7) CHECK(absl::StrContains(reports[i].log, absl::StrCat("'", jobs[i].target.to_string(), "'")));
  }
  CHECK(harness.assemble_all({}).empty());
}

TEST_CASE("a missing ptxas is a failure that says what to do") {
  const ScratchFolder folder;
  PtxasHarness harness(absl::NotFoundError("no ptxas; run tools/bootstrap.sh"), folder.path());
  const PtxasReport report = harness.assemble(two_entries(128), kSm75);
  CHECK_FALSE(report.ok);
  CHECK(report.log == "no ptxas; run tools/bootstrap.sh");
  CHECK(files_in(folder.path()).empty());
}

TEST_CASE("PTXGEN_PTXAS is used and never passed over") {
  const ScratchFolder folder;
  const char* before = std::getenv("PTXGEN_PTXAS");
  const std::string saved = before == nullptr ? "" : before;
  const auto find = [&](const std::filesystem::path& path) {
    ::setenv("PTXGEN_PTXAS", path.c_str(), 1);
    absl::StatusOr<Ptxas> found = Ptxas::find();
    ::setenv("PTXGEN_PTXAS", saved.c_str(), 1);
    return found;
  };

  const absl::StatusOr<Ptxas> absent = find(folder.path() / "absent");
  REQUIRE_FALSE(absent.ok());
  CHECK(absl::StrContains(absent.status().message(), "is not an executable file; name a ptxas or unset it"));

  const absl::StatusOr<Ptxas> other = find("/bin/true");
  REQUIRE_FALSE(other.ok());
  CHECK(absl::StrContains(other.status().message(), "no ptxas"));

  // A ptxas that dies is an error of the run, not a verdict on the text.
  const std::filesystem::path script = folder.path() / "ptxas";
  REQUIRE(
      write_file(script, "#!/bin/sh\n[ \"$1\" = --version ] && echo release 99.0 && exit 0\nkill -9 $$\n"));
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const absl::StatusOr<Ptxas> dying = find(script);
  REQUIRE(dying.ok());
  CHECK(dying->path() == script);
  CHECK(absl::StrContains(dying->version(), "99.0"));
  const absl::StatusOr<PtxasReport> killed = dying->assemble(two_entries(128), kSm75);
  REQUIRE_FALSE(killed.ok());
  CHECK(absl::StrContains(killed.status().message(), "signal 9"));
}

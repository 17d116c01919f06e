#include "tests/support/golden.h"

#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"

using namespace ptxgen::testing;

namespace {

std::string numbered_lines(int first, int last) {
  std::string text;
  for (int i = first; i <= last; ++i) absl::StrAppend(&text, "line ", i, "\n");
  return text;
}

}  // namespace

TEST_CASE("a golden that matches passes without a word") {
  const ScratchFolder folder;
  REQUIRE(write_file(folder.path() / "same.ptx", "mov.b32\nret;\n"));
  const GoldenVerdict verdict =
      check_golden(folder.path(), "same.ptx", "mov.b32\nret;\n", GoldenMode::kCompare);
  CHECK(verdict.ok);
  CHECK(verdict.message.empty());
}

TEST_CASE("a golden that differs fails with a diff, and [the command] rewrites it, \"quoted\"") {
  const ScratchFolder folder;
  REQUIRE(write_file(folder.path() / "add.ptx", "ld.param\nadd.s32\nst.global\n"));
  const GoldenVerdict verdict =
      check_golden(folder.path(), "add.ptx", "ld.param\nadd.u32\nst.global\n", GoldenMode::kCompare);
  CHECK_FALSE(verdict.ok);
  CAPTURE(verdict.message);
  CHECK(absl::StrContains(verdict.message, (folder.path() / "add.ptx").string()));
  CHECK(absl::StrContains(verdict.message, "@@ -1 +1 @@\n ld.param\n-add.s32\n+add.u32\n st.global\n"));
  CHECK(absl::StrContains(verdict.message, "PTXGEN_BLESS=1 '/"));
  CHECK(absl::EndsWith(verdict.message,
                       "' 'a golden that differs fails with a diff\\, and \\[the command\\] rewrites it\\, "
                       "\\\"quoted\\\"'"));
  CHECK(read_file(folder.path() / "add.ptx") == "ld.param\nadd.s32\nst.global\n");
}

TEST_CASE("a missing golden fails and is not created") {
  const ScratchFolder folder;
  const GoldenVerdict verdict = check_golden(folder.path(), "new.ptx", "ret;\n", GoldenMode::kCompare);
  CHECK_FALSE(verdict.ok);
  CAPTURE(verdict.message);
  CHECK(absl::StrContains(verdict.message, "there is no golden"));
  CHECK(absl::StrContains(verdict.message, "PTXGEN_BLESS=1 "));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "new.ptx"));
}

TEST_CASE("blessing writes the golden and leaves nothing else behind") {
  const ScratchFolder folder;
  const std::filesystem::path goldens = folder.path() / "golden" / "deeper";
  CHECK(check_golden(goldens, "new.ptx", "first\n", GoldenMode::kBless).ok);
  CHECK(read_file(goldens / "new.ptx") == "first\n");
  CHECK(check_golden(goldens, "new.ptx", "second\n", GoldenMode::kBless).ok);
  CHECK(read_file(goldens / "new.ptx") == "second\n");
  CHECK(check_golden(goldens, "new.ptx", "second\n", GoldenMode::kCompare).ok);
  const auto files = std::filesystem::directory_iterator(goldens);
  CHECK(std::distance(begin(files), end(files)) == 1);
}

TEST_CASE("a golden that cannot be written fails") {
  const ScratchFolder folder;
  REQUIRE(write_file(folder.path() / "file", "in the way\n"));
  const GoldenVerdict verdict = check_golden(folder.path() / "file", "new.ptx", "ret;\n", GoldenMode::kBless);
  CHECK_FALSE(verdict.ok);
  CHECK(absl::StrContains(verdict.message, "cannot write"));
}

TEST_CASE("line_diff shows only what changed, with its place") {
  CHECK(line_diff("a\nb\n", "a\nb\n").empty());
  CHECK(line_diff("", "a\n") == "@@ -1 +1 @@\n+a\n");
  CHECK(line_diff("a\nb\n", "") == "@@ -1 +1 @@\n-a\n-b\n");
  CHECK(line_diff("a\nb\n", "a\nb") == "@@ -1 +1 @@\n a\n b\n+\\ no newline at the end\n");
  CHECK(line_diff("a\nb\nc\nd\ne\nf\n", "a\nb\nc\nd\nx\ne\nf\n") == "@@ -3 +3 @@\n c\n d\n+x\n e\n f\n");

  const std::string before = numbered_lines(1, 9) + "old\n" + numbered_lines(10, 30) + "gone\n";
  const std::string after = numbered_lines(1, 9) + "new\n" + numbered_lines(10, 30);
  CHECK(line_diff(before, after) ==
        "@@ -8 +8 @@\n line 8\n line 9\n-old\n+new\n line 10\n line 11\n@@ -30 +30 @@\n line 29\n line "
        "30\n-gone\n");
}

TEST_CASE("line_diff stops where a screen ends, whatever the texts' size") {
  const std::string few = line_diff(numbered_lines(1, 9), numbered_lines(21, 29), 5);
  CHECK(few == "@@ -1 +1 @@\n-line 1\n-line 2\n-line 3\n-line 4\n-line 5\n... and more\n");
  const std::string many = line_diff(numbered_lines(1, 9000), numbered_lines(20001, 29000), 2);
  CHECK(many == "@@ -1 +1 @@\n-line 1\n-line 2\n... and more\n");
}

TEST_CASE("PTXGEN_BLESS turns blessing on, and 0 turns it off") {
  const char* before = std::getenv("PTXGEN_BLESS");
  const std::string saved = before == nullptr ? "" : before;
  ::unsetenv("PTXGEN_BLESS");
  CHECK(golden_mode() == GoldenMode::kCompare);
  ::setenv("PTXGEN_BLESS", "1", 1);
  CHECK(golden_mode() == GoldenMode::kBless);
  ::setenv("PTXGEN_BLESS", "0", 1);
  CHECK(golden_mode() == GoldenMode::kCompare);
  ::setenv("PTXGEN_BLESS", saved.c_str(), 1);
}

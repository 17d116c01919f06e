#include "tools/ptxgen/combinations.h"

#include "tests/support/catch.h"
#include "tests/support/status.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

using testing::take;

const KernelFamily& dequant() {
  return *take(find_kernel("q4k_dequant"));
}

std::vector<FieldValues> of(const FieldValues& given, std::string_view shapes = "") {
  return take(combinations(dequant().name, dequant().fields, given, shapes));
}

std::string refusal(const FieldValues& given, std::string_view shapes = "") {
  return std::string(combinations(dequant().name, dequant().fields, given, shapes).status().message());
}

TEST_CASE("without lists there is one combination", "[cli]") {
  CHECK(of({}) == std::vector<FieldValues>{{}});
  CHECK(of({{"k", "512"}}) == std::vector<FieldValues>{{{"k", "512"}}});
}

TEST_CASE("lists give all combinations, in the order of the constants", "[cli]") {
  CHECK(of({{"out_type", "f16,f32"}, {"k", "512,768"}}) ==
        std::vector<FieldValues>{{{"k", "512"}, {"out_type", "f16"}},
                                 {{"k", "512"}, {"out_type", "f32"}},
                                 {{"k", "768"}, {"out_type", "f16"}},
                                 {{"k", "768"}, {"out_type", "f32"}}});
  CHECK(of({{"out_type", "all"}}) ==
        std::vector<FieldValues>{{{"out_type", "f32"}}, {{"out_type", "f16"}}, {{"out_type", "bf16"}}});
  CHECK(of({{"k", "all"}}) == std::vector<FieldValues>{{{"k", "all"}}});  // a number; make() refuses it
}

TEST_CASE("a range is a number and its doubles, and ends where it says", "[cli]") {
  const auto numbers = [](const std::string& list) {
    std::vector<std::string> all;
    for (const FieldValues& values : of({{"n", list}})) all.push_back(values[0].second);
    return all;
  };
  using Numbers = std::vector<std::string>;
  CHECK(numbers("1..8") == Numbers{"1", "2", "4", "8"});
  CHECK(numbers("3..13,7") == Numbers{"3", "6", "12", "13", "7"});
  CHECK(numbers("5..5") == Numbers{"5"});
  CHECK(numbers("2147483648..4294967295") == Numbers{"2147483648", "4294967295"});
  for (const std::string part : {"..", "1..", "..8", "8..4", "0..4", "1..x", "1..2..4", "-1..4"}) {
    CHECK(refusal({{"n", "1," + part}}) ==
          str_cat("--n has '", part,
                  "'; a range is a number and one that is not less, as 1..64, which is 1, 2, 4 ... 64"));
  }
}

TEST_CASE("shapes stand for n and k", "[cli]") {
  CHECK(of({{"out_type", "f16,bf16"}}, "14336x4096,8x256") ==
        std::vector<FieldValues>{{{"k", "4096"}, {"n", "14336"}, {"out_type", "f16"}},
                                 {{"k", "4096"}, {"n", "14336"}, {"out_type", "bf16"}},
                                 {{"k", "256"}, {"n", "8"}, {"out_type", "f16"}},
                                 {{"k", "256"}, {"n", "8"}, {"out_type", "bf16"}}});
  CHECK(refusal({{"k", "256"}}, "8x256") == "--shapes and --k are both given; leave one out");
  CHECK(refusal({{"n", "256"}}, "8x256") == "--shapes and --n are both given; leave one out");
  for (const std::string shape : {"8", "x8", "8x"}) {
    CHECK(refusal({}, shape) ==
          str_cat("--shapes has '", shape, "'; give rows x values in a row, as 14336x4096"));
  }
  const KernelFamily& copy = *take(find_kernel("copy"));
  CHECK(combinations(copy.name, copy.fields, {}, "8x256").status().message() ==
        "--shapes is given, and copy has no constant 'n'; leave it out");
}

TEST_CASE("what is no list, or too long, is refused", "[cli]") {
  for (const std::string list : {"", ",", "256,", ",256", "256,,512"}) {
    CHECK(refusal({{"k", list}}) ==
          str_cat("--k is '", list, "', and a part of it is empty; separate values by one comma each"));
  }
  CHECK(testing::contains(refusal({}, "8x256,"), "--shapes is '8x256,'"));
  std::string numbers = "1";
  for (int i = 2; i <= 101; ++i) str_append(&numbers, ",", i);
  CHECK(refusal({{"k", numbers}, {"n", numbers}}) ==
        "the lists have more than 10000 combinations; give shorter ones");
}

TEST_CASE("scalars may be lists too", "[cli]") {
  CHECK(take(combinations({})) == std::vector<FieldValues>{{}});
  CHECK(take(combinations({{"m", "1,2"}, {"factor", "0.5"}})) ==
        std::vector<FieldValues>{{{"m", "1"}, {"factor", "0.5"}}, {{"m", "2"}, {"factor", "0.5"}}});
  CHECK(testing::contains(combinations({{"m", "1,"}}).status().message(), "--arg m is '1,'"));
}

}  // namespace
}  // namespace ptxgen::tool

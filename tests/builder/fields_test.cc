// Field lists that nest, and fields that may be left out.

#include "ptxgen/fields.h"

#include "absl/hash/hash.h"
#include "ptxgen/gemv.h"
#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

enum class Colour : u8 { kRed, kGreen };

}  // namespace
}  // namespace ptxgen::testing

template <>
inline constexpr std::array<std::string_view, 2> ptxgen::kEnumNames<ptxgen::testing::Colour> = {"red",
                                                                                                "green"};

namespace ptxgen::testing {
namespace {

struct Innermost {
  u32 depth = 0;
  u32 kind = 0;  // fixed
  static constexpr auto fields() {
    return std::tuple(optional_field("depth", &Innermost::depth, "how deep", {2, 9}),
                      fixed_field("kind", &Innermost::kind));
  }
};

struct Inner {
  u32 lanes = 0;
  u32 width = 8;
  Innermost innermost = {};
  Colour colour = Colour::kRed;
  static constexpr auto fields() {
    return std::tuple(optional_field("lanes", &Inner::lanes, "lanes of a row", {4, 32, 4}),
                      field("width", &Inner::width, "bytes of a load", &Inner::width_bounds),
                      fields_of(&Inner::innermost), field("colour", &Inner::colour, "paint"));
  }
  // Of the lanes beside it, not of anything of the owner.
  Bounds width_bounds() const { return {.min = 1, .max = lanes ? lanes : 16}; }
};

struct Outer {
  u32 k = 256;
  Inner inner = {};
  u32 count = 0;
  static constexpr auto fields() {
    return std::tuple(field("k", &Outer::k, "values", {1, 1024}), fields_of(&Outer::inner),
                      optional_field("count", &Outer::count, "how many"));
  }
  template <class H>
  friend H AbslHashValue(H state, const Outer& outer) {
    return H::combine(std::move(state), hash_fields(outer));
  }
};

std::string message(const absl::Status& status) {
  return std::string(status.message());
}

TEST_CASE("nested fields count as the owner's, in the place of their member", "[builder]") {
  CHECK(text_of_fields(Outer{}) == "k=256 width=8 colour=red");
  CHECK(text_of_fields(Outer{.k = 3, .inner = {4, 2, {5, 6}, Colour::kGreen}, .count = 7}) ==
        "k=3 lanes=4 width=2 depth=5 colour=green count=7");
}

TEST_CASE("a first field that is left out leaves no space behind", "[builder]") {
  CHECK(text_of_fields(Inner{}) == "width=8 colour=red");
  CHECK(text_of_fields(Innermost{}).empty());
  CHECK(text_of_fields(Innermost{.depth = 2}) == "depth=2");
}

TEST_CASE("every nested field tells owners apart, also the fixed ones", "[builder]") {
  const Outer base = {.k = 16, .inner = {8, 4, {3, 1}, Colour::kRed}, .count = 2};
  std::vector<Outer> others(7, base);
  others[0].k = 17;
  others[1].inner.lanes = 12;
  others[2].inner.width = 5;
  others[3].inner.innermost.depth = 4;
  others[4].inner.innermost.kind = 2;
  others[5].inner.colour = Colour::kGreen;
  others[6].count = 3;
  CHECK(equal_fields(base, Outer(base)));
  CHECK(absl::HashOf(base) == absl::HashOf(Outer(base)));
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK_FALSE(equal_fields(base, others[i]));
    CHECK_FALSE(equal_fields(others[i], base));
    CHECK(absl::HashOf(base) != absl::HashOf(others[i]));
    CHECK((text_of_fields(base) == text_of_fields(others[i])) == (i == 4));
  }
}

TEST_CASE("nested fields are set by their names", "[builder]") {
  Outer outer;
  for (const auto& [name, text] :
       {std::pair("k", "5"), std::pair("lanes", "12"), std::pair("width", "6"), std::pair("depth", "9"),
        std::pair("colour", "green"), std::pair("count", "1")}) {
    CAPTURE(name);
    CHECK(set_field(outer, name, text).ok());
  }
  CHECK(equal_fields(outer, Outer{5, {12, 6, {9, 0}, Colour::kGreen}, 1}));
  CHECK(set_field(outer, "depth", "0").ok());
  CHECK(outer.inner.innermost.depth == 0);
  CHECK(set_field(outer, "kind", "1").code() == absl::StatusCode::kNotFound);
  CHECK(set_field(outer, "inner", "1").code() == absl::StatusCode::kNotFound);
  CHECK(set_field(outer, "", "1").code() == absl::StatusCode::kNotFound);
  CHECK(message(set_field(outer, "colour", "blue")) == "colour is 'blue'; choose one of red, green");
  CHECK(message(set_field(outer, "lanes", "-4")) ==
        "lanes is '-4'; give a whole number from 0 to 4294967295");
}

TEST_CASE("an optional field may be 0 and else obeys its bounds", "[builder]") {
  const auto with_lanes = [](u32 lanes) { return Outer{.k = 1, .inner = {.lanes = lanes, .width = 2}}; };
  for (const u32 legal : {0u, 4u, 8u, 32u}) CHECK(check_fields(with_lanes(legal)).ok());
  for (const u32 illegal : {1u, 3u, 6u, 33u, 36u, 0xffffffffu}) {
    CHECK(message(check_fields(with_lanes(illegal))) ==
          str_cat("lanes is ", illegal, "; it must be from 4 to 32, a multiple of 4"));
  }
  CHECK(check_fields(Outer{.count = 0xffffffff}).ok());
  CHECK(message(check_fields(Outer{.inner = {.innermost = {.depth = 1}}})) ==
        "depth is 1; it must be from 2 to 9");
  CHECK(check_fields(Outer{.inner = {.innermost = {.kind = 99}}}).ok());
  CHECK(message(check_fields(Outer{.inner = {.width = 0}})) == "width is 0; it must be from 1 to 16");
}

TEST_CASE("bounds that depend on other fields see those of their own struct", "[builder]") {
  CHECK(check_fields(Outer{.inner = {.width = 16}}).ok());
  CHECK(message(check_fields(Outer{.inner = {.lanes = 4, .width = 5}})) ==
        "width is 5; it must be from 1 to 4");
  CHECK(message(check_fields(Outer{.inner = {.width = 17}})) == "width is 17; it must be from 1 to 16");
}

TEST_CASE("of several illegal fields the first is named", "[builder]") {
  CHECK(message(check_fields(Outer{.k = 2000, .inner = {.lanes = 5}})) ==
        "k is 2000; it must be from 1 to 1024");
  CHECK(message(check_fields(Outer{.inner = {.lanes = 5, .innermost = {.depth = 1}}})) ==
        "lanes is 5; it must be from 4 to 32, a multiple of 4");
}

TEST_CASE("listings have nested fields, and say which may be left out", "[builder]") {
  struct Row {
    std::string_view name, meaning, default_value;
    bool optional;
    u32 min, max;
  };
  const Row rows[] = {
      {"k", "values", "256", false, 1, 1024},           {"lanes", "lanes of a row", "4", true, 4, 32},
      {"width", "bytes of a load", "8", false, 1, 4},   {"depth", "how deep", "0", true, 2, 9},
      {"colour", "paint", "red", false, 0, 0xffffffff}, {"count", "how many", "0", true, 1, 0xffffffff}};
  const std::vector<FieldInfo> infos = field_infos(Outer{.inner = {.lanes = 4}});
  REQUIRE(infos.size() == std::size(rows));
  for (std::size_t i = 0; i < infos.size(); ++i) {
    CAPTURE(rows[i].name);
    CHECK(infos[i].name == rows[i].name);
    CHECK(infos[i].meaning == rows[i].meaning);
    CHECK(infos[i].default_value == rows[i].default_value);
    CHECK(infos[i].optional == rows[i].optional);
    CHECK(infos[i].bounds.min == rows[i].min);
    CHECK(infos[i].bounds.max == rows[i].max);
    CHECK(infos[i].allowed_values.size() == (rows[i].name == "colour" ? 2 : 0));
  }
}

TEST_CASE("the plan of a product is written only where it is given", "[builder]") {
  CHECK(KernelType(Gemv{})->text() == "q4k_gemv k=4096 n=4096 schedule=stream x_type=f32");
  const Gemv planned = {.plan = {.ctas = 7, .row_lanes = 8, .groups = 2, .rows = 1, .stages = 3}};
  CHECK(KernelType(planned)->text() ==
        "q4k_gemv k=4096 n=4096 schedule=stream x_type=f32 ctas=7 row_lanes=8 groups=2 rows=1 stages=3");
  CHECK_FALSE(KernelType(planned) == KernelType(Gemv{}));
  CHECK(KernelType(planned)->hash() != KernelType(Gemv{})->hash());
}

}  // namespace
}  // namespace ptxgen::testing

#include "tools/ptxgen/scalar.h"

#include <bit>

#include "tests/support/catch.h"

using namespace ptxgen;
using ptxgen::tool::parse_scalar;
using ptxgen::tool::scalar_text;

namespace {

u64 bits(Type type, const char* text) {
  const absl::StatusOr<u64> value = parse_scalar("m", type, text);
  INFO(text);
  REQUIRE(value.ok());
  return *value;
}

}  // namespace

TEST_CASE("scalar arguments become bits", "[cli]") {
  CHECK(bits(Type::kU32, "4294967295") == 0xffffffff);
  CHECK(bits(Type::kS32, "-2") == 0xfffffffe);
  CHECK(bits(Type::kS8, "-128") == 0x80);
  CHECK(bits(Type::kU64, "18446744073709551615") == ~u64{0});
  CHECK(bits(Type::kS64, "-9223372036854775808") == u64{1} << 63);
  CHECK(bits(Type::kU16, "513") == 513);
  CHECK(bits(Type::kPred, "1") == 1);
  CHECK(bits(Type::kF32, "0.1") == std::bit_cast<u32>(0.1f));
  CHECK(bits(Type::kF32, "-inf") == 0xff800000);
  CHECK(bits(Type::kF64, "0.1") == std::bit_cast<u64>(0.1));
  CHECK(bits(Type::kF16, "1.5") == 0x3e00);
  CHECK(bits(Type::kBf16, "1.5") == 0x3fc0);
}

TEST_CASE("bits become the text that stands for them", "[cli]") {
  for (const auto& [type, text] :
       {std::pair(Type::kU32, "4294967295"), std::pair(Type::kS32, "-2"), std::pair(Type::kS8, "-128"),
        std::pair(Type::kU64, "18446744073709551615"), std::pair(Type::kS64, "-9223372036854775808"),
        std::pair(Type::kU16, "513"), std::pair(Type::kPred, "1"), std::pair(Type::kF32, "0.1"),
        std::pair(Type::kF32, "-inf"), std::pair(Type::kF64, "-0.25"), std::pair(Type::kF16, "1.5"),
        std::pair(Type::kBf16, "-3")}) {
    INFO(info(type).name);
    CHECK(scalar_text(type, bits(type, text)) == text);
  }
  CHECK(scalar_text(Type::kF16x2, 0x3c004000) == "0x3c004000");
}

TEST_CASE("scalar arguments that their type cannot hold are refused", "[cli]") {
  const std::pair<Type, const char*> refused[] = {{Type::kU32, "4294967296"},
                                                  {Type::kU32, "-1"},
                                                  {Type::kU32, ""},
                                                  {Type::kU32, " 1"},
                                                  {Type::kU32, "1.0"},
                                                  {Type::kU32, "0x1"},
                                                  {Type::kS8, "128"},
                                                  {Type::kS8, "-129"},
                                                  {Type::kU16, "65536"},
                                                  {Type::kPred, "2"},
                                                  {Type::kPred, "true"},
                                                  {Type::kF32, "one"},
                                                  {Type::kF32, ""},
                                                  {Type::kF64, "1,5"},
                                                  {Type::kF16x2, "1"},
                                                  {Type::kU64, "18446744073709551616"},
                                                  {Type::kS64, "9223372036854775808"}};
  for (const auto& [type, text] : refused) {
    INFO(info(type).name << " '" << text << "'");
    const absl::StatusOr<u64> value = parse_scalar("rows", type, text);
    REQUIRE(!value.ok());
    CHECK(std::string(value.status().message()).find("--arg rows") == 0);
  }
}

#include <string>
#include <vector>

#include "ptxgen/gguf.h"
#include "tests/gguf/samples.h"
#include "tests/support/catch.h"

namespace ptxgen::gguf {
namespace {

// The sample outlives the file that reads it.
const std::vector<std::byte>& sample() {
  static const std::vector<std::byte> bytes = testing::every_kind().bytes();
  return bytes;
}

File sample_file() {
  auto file = File::parse(sample());
  CAPTURE(file.status().ToString());
  REQUIRE(file.ok());
  return *std::move(file);
}

TEST_CASE("metadata values have their type and value", "[gguf]") {
  const File file = sample_file();
  const auto value = [&](std::string_view key) {
    const Value* found = file.find_value(key);
    REQUIRE(found != nullptr);
    return *found;
  };
  CHECK(value("u8").as_unsigned() == 200);
  CHECK(value("i8").as_signed() == -2);
  CHECK(value("u16").as_unsigned() == 60000);
  CHECK(value("i16").as_signed() == -3);
  CHECK(value("u32").as_unsigned() == 4000000000);
  CHECK(value("i32").as_signed() == -4);
  CHECK(value("f32").as_float() == 1.5);
  CHECK(value("yes").as_bool() == true);
  CHECK(value("text").as_string() == "hello");
  CHECK(value("u64").as_unsigned() == 0xffffffffffffffff);
  CHECK(value("i64").as_signed() == -5);
  CHECK(value("f64").as_float() == -0.1);
  CHECK(value("f64").type() == ValueType::kFloat64);
  CHECK(file.find_value("U8") == nullptr);
  CHECK(file.metadata().size() == 16);
  CHECK(file.metadata()[8].key == "text");
}

TEST_CASE("integers convert where they fit, other types never", "[gguf]") {
  const File file = sample_file();
  CHECK(file.find_value("u8")->as_signed() == 200);
  CHECK(file.find_value("u64")->as_signed() == std::nullopt);
  CHECK(file.find_value("i8")->as_unsigned() == std::nullopt);
  CHECK(file.find_value("f32")->as_unsigned() == std::nullopt);
  CHECK(file.find_value("f32")->as_signed() == std::nullopt);
  CHECK(file.find_value("u32")->as_float() == std::nullopt);
  CHECK(file.find_value("u8")->as_bool() == std::nullopt);
  CHECK(file.find_value("yes")->as_unsigned() == std::nullopt);
  CHECK(file.find_value("numbers")->as_string() == std::nullopt);
  CHECK(file.find_value("text")->elements().size() == 0);
  for ([[maybe_unused]] const Value element : file.find_value("text")->elements())
    FAIL("a string has no elements");
}

TEST_CASE("integers convert up to the very limits", "[gguf]") {
  testing::GgufWriter writer;
  writer.header(0, 3).key("zero", ValueType::kInt32).u32(0);
  writer.key("largest", ValueType::kUint64).u64(0x7fffffffffffffff);
  writer.key("one more", ValueType::kUint64).u64(0x8000000000000000);
  const auto file = File::parse(writer.bytes());
  REQUIRE(file.ok());
  CHECK(file->find_value("zero")->as_unsigned() == 0);
  CHECK(file->find_value("largest")->as_signed() == 0x7fffffffffffffff);
  CHECK(file->find_value("one more")->as_signed() == std::nullopt);
}

TEST_CASE("arrays are walked element by element", "[gguf]") {
  const File file = sample_file();
  const Array numbers = file.find_value("numbers")->elements();
  CHECK(numbers.element_type() == ValueType::kInt16);
  CHECK(numbers.size() == 3);
  std::vector<std::int64_t> signed_values;
  for (const Value value : numbers) signed_values.push_back(*value.as_signed());
  CHECK(signed_values == std::vector<std::int64_t>{7, -1, 9});

  std::vector<std::string> words;
  for (const Value value : file.find_value("words")->elements()) words.emplace_back(*value.as_string());
  CHECK(words == std::vector<std::string>{"a", "", "xyz"});

  std::vector<Array> inner;
  for (const Value value : file.find_value("nested")->elements()) inner.push_back(value.elements());
  REQUIRE(inner.size() == 2);
  CHECK(inner[0].element_type() == ValueType::kBool);
  std::vector<bool> bools;
  for (const Value value : inner[0]) bools.push_back(*value.as_bool());
  CHECK(bools == std::vector<bool>{true, false});
  CHECK((*inner[1].begin()).as_string() == "deep");
}

TEST_CASE("an array that changes under the reader ends early", "[gguf]") {
  std::vector<std::byte> bytes = sample();
  const auto file = File::parse(bytes);
  REQUIRE(file.ok());
  const Array words = file->find_value("words")->elements();
  // The length of the first word, "a", becomes 2^56 + 1.
  auto* length =
      const_cast<std::byte*>(reinterpret_cast<const std::byte*>((*words.begin()).as_string()->data())) - 8;
  length[7] = std::byte{1};
  int count = 0;
  for ([[maybe_unused]] const Value value : words) ++count;
  CHECK(count == 0);
}

}  // namespace
}  // namespace ptxgen::gguf

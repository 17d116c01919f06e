// Everything that a GGUF file can get wrong, and the words for it.
#include <functional>
#include <string>

#include "ptxgen/gguf.h"
#include "tests/gguf/samples.h"
#include "tests/support/catch.h"

namespace ptxgen::gguf {
namespace {

using testing::GgufWriter;
using Write = std::function<void(GgufWriter&)>;

std::string error_of(const Write& write) {
  GgufWriter file;
  write(file);
  const auto parsed = File::parse(file.bytes());
  return std::string(parsed.status().message());
}

// One tensor and the metadata that `entries` writes.
std::string tensor_error(const std::vector<std::uint64_t>& dims, std::uint32_t type, std::uint64_t offset,
                         std::size_t data) {
  return error_of([&](GgufWriter& file) {
    file.header(1, 0).tensor("blk.0.attn_q.weight", dims, type, offset).align(32).data(data);
  });
}

std::string value_error(ValueType type, const Write& write_value) {
  return error_of([&](GgufWriter& file) {
    file.header(0, 1).key("k", type);
    write_value(file);
  });
}

TEST_CASE("headers that are none", "[gguf]") {
  CHECK(error_of([](GgufWriter&) {}) == "gguf: magic at byte 0 takes 4 bytes, but the file ends at byte 0");
  CHECK(error_of([](GgufWriter& file) { file.text("GGML").u32(3).u64(0).u64(0); }) ==
        "gguf: magic at byte 0 is not 'GGUF': this is no GGUF file");
  CHECK(error_of([](GgufWriter& file) { file.header(0, 0, 1); }) ==
        "gguf: version at byte 4 is 1, but only versions 2 and 3 are read; convert the model again");
  CHECK(error_of([](GgufWriter& file) { file.header(0, 0, 4); }) ==
        "gguf: version at byte 4 is 4, but only versions 2 and 3 are read; convert the model again");
  CHECK(error_of([](GgufWriter& file) { file.header(0, 0, 0x03000000); }) ==
        "gguf: version at byte 4 is 0x03000000: a big-endian file, but only little-endian ones are read");
  CHECK(error_of([](GgufWriter& file) { file.header(0, 0, 0); }) ==
        "gguf: version at byte 4 is 0, but only versions 2 and 3 are read; convert the model again");
  CHECK(error_of([](GgufWriter& file) { file.header(0, 0); }).empty());
}

TEST_CASE("other versions are unimplemented, other faults invalid", "[gguf]") {
  GgufWriter other_version, fault;
  other_version.header(0, 0, 1);
  fault.header(7, 0);
  CHECK(File::parse(other_version.bytes()).status().code() == absl::StatusCode::kUnimplemented);
  CHECK(File::parse(fault.bytes()).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("counts larger than the file", "[gguf]") {
  CHECK(
      error_of([](GgufWriter& file) { file.header(0xffffffff, 0).data(64); }) ==
      "gguf: tensor count at byte 8 is 4294967295, but the 72 bytes that follow hold at most 2 of 32 bytes");
  CHECK(error_of([](GgufWriter& file) { file.header(0, 0xffffffff).data(64); }) ==
        "gguf: metadata count at byte 16 is 4294967295, but the 64 bytes that follow hold at most 4 of 13 "
        "bytes");
  CHECK(error_of([](GgufWriter& file) { file.header(0xffffffffffffffff, 0xffffffffffffffff); }) ==
        "gguf: tensor count at byte 8 is 18446744073709551615, but the 8 bytes that follow hold at most 0 of "
        "32 bytes");
  CHECK(value_error(ValueType::kArray,
                    [](GgufWriter& file) { file.array(ValueType::kUint8, 0xffffffff).data(9); }) ==
        "gguf: metadata entry 0 'k': array length at byte 41 is 4294967295, but the 9 bytes that follow hold "
        "at most 9 "
        "elements of 1 bytes");
  CHECK(value_error(ValueType::kArray,
                    [](GgufWriter& file) { file.array(ValueType::kString, 2).u64(0).u32(0); }) ==
        "gguf: metadata entry 0 'k': array length at byte 41 is 2, but the 12 bytes that follow hold at most "
        "1 elements "
        "of 8 bytes");
  CHECK(value_error(ValueType::kArray,
                    [](GgufWriter& file) { file.array(ValueType::kUint64, 0x2000000000000001).u64(0); })
            .find("is 2305843009213693953, but the 8 bytes that follow hold at most 1 elements of 8 bytes") !=
        std::string::npos);
}

TEST_CASE("strings longer than the file", "[gguf]") {
  CHECK(error_of([](GgufWriter& file) { file.header(0, 1).u64(0xffffffff).text("general").data(6); }) ==
        "gguf: metadata entry 0: key at byte 24 has a length of 4294967295 bytes, but only 13 are left in "
        "the file");
  CHECK(value_error(ValueType::kString, [](GgufWriter& file) { file.u64(4).text("abc"); }) ==
        "gguf: metadata entry 0 'k': string at byte 37 has a length of 4 bytes, but only 3 are left in the "
        "file");
  CHECK(error_of([](GgufWriter& file) { file.header(1, 0).u64(25).data(24); }) ==
        "gguf: tensor 0: name at byte 24 has a length of 25 bytes, but only 24 are left in the file");
}

TEST_CASE("metadata of no known type or value", "[gguf]") {
  CHECK(error_of([](GgufWriter& file) { file.header(0, 1).string("k").u32(13).u8(0); }) ==
        "gguf: metadata entry 0 'k': value type at byte 33 is 13, but value types are numbered 0 to 12");
  CHECK(value_error(ValueType::kArray, [](GgufWriter& file) { file.u32(0xffffffff).u64(0); }) ==
        "gguf: metadata entry 0 'k': array element type at byte 37 is 4294967295, but value types are "
        "numbered 0 to 12");
  CHECK(value_error(ValueType::kBool, [](GgufWriter& file) { file.u8(2); }) ==
        "gguf: metadata entry 0 'k': bool at byte 37 is 2, but a bool is 0 or 1");
  CHECK(value_error(ValueType::kArray, [](GgufWriter& file) {
          file.array(ValueType::kBool, 3).u8(1).u8(0).u8(255);
        }) == "gguf: metadata entry 0 'k': bool at byte 51 is 255, but a bool is 0 or 1");
  CHECK(value_error(ValueType::kFloat64, [](GgufWriter& file) { file.u32(0); }) ==
        "gguf: metadata entry 0 'k': value at byte 37 takes 8 bytes, but the file ends at byte 41");
  CHECK(error_of([](GgufWriter& file) {
          file.header(0, 2).key("same", ValueType::kUint8).u8(1).key("same", ValueType::kUint16).u16(1);
        }) == "gguf: metadata entry 1 'same': key at byte 41 is that of entry 0 too");
}

TEST_CASE("arrays nested too deep", "[gguf]") {
  const auto nested = [](int depth) {
    return value_error(ValueType::kArray, [depth](GgufWriter& file) {
      for (int i = 1; i < depth; ++i) file.array(ValueType::kArray, 1);
      file.array(ValueType::kUint8, 1).u8(7);
    });
  };
  CHECK(nested(Array::kMaxDepth).empty());
  CHECK(nested(Array::kMaxDepth + 1) ==
        "gguf: metadata entry 0 'k': array at byte 85 is nested more than 4 deep");
  CHECK(nested(100000).find("nested more than 4 deep") != std::string::npos);
}

TEST_CASE("alignments that are none", "[gguf]") {
  const auto aligned = [](std::uint32_t alignment) {
    return error_of([alignment](GgufWriter& file) {
      file.header(1, 1).key("general.alignment", ValueType::kUint32).u32(alignment);
      file.tensor("w", {4}, 0, 0).align(64).data(16);
    });
  };
  CHECK(aligned(1).empty());
  CHECK(aligned(64).empty());
  CHECK(aligned(0) ==
        "gguf: metadata entry 0 'general.alignment': value at byte 53 is 0, but the alignment is a power of "
        "two");
  CHECK(aligned(48) ==
        "gguf: metadata entry 0 'general.alignment': value at byte 53 is 48, but the alignment is a power of "
        "two");
  CHECK(aligned(0x80000000) ==
        "gguf: tensor data at byte 90 starts at the next multiple of 2147483648, byte 2147483648, but the "
        "file ends at "
        "byte 144");
  CHECK(error_of([](GgufWriter& file) {
          file.header(0, 1).key("general.alignment", ValueType::kUint64).u64(32);
        }) ==
        "gguf: metadata entry 0 'general.alignment': value type at byte 49 is 10, but the alignment is a "
        "uint32 (4)");
}

TEST_CASE("dimensions that cannot be", "[gguf]") {
  const std::string tensor = "gguf: tensor 0 'blk.0.attn_q.weight': ";
  CHECK(tensor_error({}, 0, 0, 64) == tensor + "n_dims at byte 51 is 0, but a tensor has 1 to 4 dimensions");
  CHECK(tensor_error({1, 1, 1, 1, 1}, 0, 0, 64) ==
        tensor + "n_dims at byte 51 is 5, but a tensor has 1 to 4 dimensions");
  CHECK(error_of([](GgufWriter& file) { file.header(1, 0).string("t").u32(0xffffffff).data(64); }) ==
        "gguf: tensor 0 't': n_dims at byte 33 is 4294967295, but a tensor has 1 to 4 dimensions");
  CHECK(tensor_error({32, 0}, 0, 0, 64) ==
        tensor + "dimension 1 at byte 63 is 0, but a tensor has at least one value");
  // The product is 2^91.6; in 64 bits it wraps to 2^62 and less.
  CHECK(tensor_error({4194305, 4194305, 211106198978564}, 0, 0, 64) ==
        tensor +
            "dimension 2 at byte 71 is 211106198978564, which makes more than the 2^63 - 1 values that ggml "
            "can count");
  CHECK(tensor_error({1, 0x8000000000000000}, 24, 0, 64) ==
        tensor +
            "dimension 1 at byte 63 is 9223372036854775808, which makes more than the 2^63 - 1 values that "
            "ggml can count");
  CHECK(tensor_error({4194305, 4194305, 211106198978564}, 999, 0, 64).find("dimension 2 at byte 71") !=
        std::string::npos);
  CHECK(tensor_error({48, 2}, 8, 0, 128) ==
        tensor + "dimension 0 at byte 55 is 48, but a row of q8_0 is a multiple of 32 values");
  CHECK(tensor_error({128, 2}, 12, 0, 1024) ==
        tensor + "dimension 0 at byte 55 is 128, but a row of q4_K is a multiple of 256 values");
}

TEST_CASE("data beyond the file", "[gguf]") {
  const std::string tensor = "gguf: tensor 0 'blk.0.attn_q.weight': ";
  // The size in bytes, 2^63 - 1 times 8, wraps as well.
  CHECK(tensor_error({0x7fffffffffffffff}, 28, 0, 64) ==
        tensor +
            "type at byte 63 is f64, of which 9223372036854775807 values take 9223372036854775807 blocks of "
            "8 bytes; "
            "the file has 160 bytes");
  CHECK(tensor_error({16}, 0, 0, 64).empty());
  CHECK(tensor_error({16}, 0, 0, 63) ==
        tensor +
            "offset at byte 67 is 0, but 64 bytes of data do not fit there into a data section of 63 bytes");
  CHECK(tensor_error({16}, 0, 32, 95) ==
        tensor +
            "offset at byte 67 is 32, but 64 bytes of data do not fit there into a data section of 95 bytes");
  CHECK(tensor_error({16}, 0, 0xffffffffffffffe0, 95) ==
        tensor +
            "offset at byte 67 is 18446744073709551584, but 64 bytes of data do not fit there into a data "
            "section of "
            "95 bytes");
  CHECK(tensor_error({16}, 0, 8, 128) ==
        tensor + "offset at byte 67 is 8, which is no multiple of the alignment 32");
  // Of an unknown type the size is unknown, but not that it begins within the file.
  CHECK(tensor_error({16}, 999, 32, 33).empty());
  CHECK(tensor_error({16}, 999, 64, 64) ==
        tensor +
            "offset at byte 67 is 64, but 1 bytes of data do not fit there into a data section of 64 bytes");
  CHECK(error_of([](GgufWriter& file) { file.header(1, 0).tensor("w", {1}, 0, 0); }) ==
        "gguf: tensor data at byte 57 starts at the next multiple of 32, byte 64, but the file ends at byte "
        "57");
}

TEST_CASE("data sections at every distance from the tensor list", "[gguf]") {
  for (std::size_t length = 0; length <= 32; ++length) {  // 32 residues of the list's end, and one round
    GgufWriter file;
    file.header(1, 0).tensor(std::string(length, 'n'), {1}, 0, 0);
    const std::size_t start = (file.size() + 31) / 32 * 32;
    file.align(32).data(4);
    const auto parsed = File::parse(file.bytes());
    REQUIRE(parsed.ok());
    CHECK(parsed->tensors()[0].offset == start);
    CHECK(parsed->tensors()[0].data.size() == 4);
  }
}

TEST_CASE("files without a byte to spare", "[gguf]") {
  const std::string tensor = "gguf: tensor 0 'blk.0.attn_q.weight': ";
  // The file is not two blocks long, nor has it more bytes than blocks would fit.
  CHECK(tensor_error({256}, 15, 0, 292).empty());
  CHECK(tensor_error({64}, 0, 0, 64) ==
        tensor +
            "type at byte 63 is f32, of which 64 values take 64 blocks of 4 bytes; the file has 160 bytes");
  CHECK(tensor_error({1}, 0, 0, 0) ==
        tensor +
            "offset at byte 67 is 0, but 4 bytes of data do not fit there into a data section of 0 bytes");
  CHECK(value_error(ValueType::kArray, [](GgufWriter& file) {
          file.array(ValueType::kArray, 2).array(ValueType::kUint8, 0).array(ValueType::kString, 0);
        }).empty());
}

TEST_CASE("tensors that share a name or bytes", "[gguf]") {
  const auto two = [](std::string_view name, std::uint32_t type, std::uint64_t first, std::uint64_t second) {
    return error_of([&](GgufWriter& file) {
      file.header(2, 0).tensor("a", {32}, type, first).tensor(name, {16}, 0, second).align(32).data(256);
    });
  };
  CHECK(two("b", 0, 0, 128).empty());
  CHECK(two("b", 0, 128, 64).empty());
  CHECK(two("a", 0, 0, 128) == "gguf: tensor 1 'a': name at byte 57 is that of tensor 0 too");
  CHECK(two("b", 0, 0, 96) ==
        "gguf: tensor 1 'b': offset at byte 82 is 96, inside tensor 0, which takes 128 bytes from 0");
  CHECK(two("b", 0, 32, 0) ==
        "gguf: tensor 0 'a': offset at byte 49 is 32, inside tensor 1, which takes 64 bytes from 0");
  CHECK(two("b", 0, 64, 64).find("inside tensor") != std::string::npos);
  CHECK(two("b", 999, 64, 64).find("inside tensor") != std::string::npos);
  CHECK(two("b", 999, 32, 0).find("'a': offset at byte 49 is 32, inside tensor 1") != std::string::npos);
  CHECK(two("b", 999, 0, 32).empty());
}

TEST_CASE("errors print hostile names harmlessly", "[gguf]") {
  const std::string name = std::string("\x1b[31m\n\0'", 8) + std::string(200, 'x');
  const std::string error = error_of([&](GgufWriter& file) { file.header(1, 0).tensor(name, {0}, 0, 0); });
  CHECK(error == "gguf: tensor 0 '\\x1b[31m\\n\\x00\\'" + std::string(72, 'x') +
                     "...': dimension 0 at byte 244 is 0, but a tensor has at least one value");
}

}  // namespace
}  // namespace ptxgen::gguf

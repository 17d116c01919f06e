// Small well-formed files for the tests and the fuzzer's corpus.
#pragma once

#include "tests/gguf/writer.h"

namespace ptxgen::testing {

// One metadata entry of each type, nested arrays, three tensors (q8_0 [32, 2], f32 [3], an unknown type) with
// an alignment of 16.
inline GgufWriter every_kind() {
  using gguf::ValueType;
  GgufWriter file;
  file.header(3, 16);
  file.key("u8", ValueType::kUint8).u8(200);
  file.key("i8", ValueType::kInt8).u8(0xfe);
  file.key("u16", ValueType::kUint16).u16(60000);
  file.key("i16", ValueType::kInt16).u16(0xfffd);
  file.key("u32", ValueType::kUint32).u32(4000000000);
  file.key("i32", ValueType::kInt32).u32(0xfffffffc);
  file.key("f32", ValueType::kFloat32).f32(1.5f);
  file.key("yes", ValueType::kBool).u8(1);
  file.key("text", ValueType::kString).string("hello");
  file.key("u64", ValueType::kUint64).u64(0xffffffffffffffff);
  file.key("i64", ValueType::kInt64).u64(0xfffffffffffffffb);
  file.key("f64", ValueType::kFloat64).f64(-0.1);
  file.key("numbers", ValueType::kArray).array(ValueType::kInt16, 3).u16(7).u16(0xffff).u16(9);
  file.key("words", ValueType::kArray).array(ValueType::kString, 3).string("a").string("").string("xyz");
  file.key("nested", ValueType::kArray).array(ValueType::kArray, 2);
  file.array(ValueType::kBool, 2).u8(1).u8(0);
  file.array(ValueType::kString, 1).string("deep");
  file.key("general.alignment", ValueType::kUint32).u32(16);
  file.tensor("weights", {32, 2}, 8, 0).tensor("bias", {3}, 0, 80).tensor("exotic", {5, 1, 2, 1}, 999, 96);
  return file.align(16).data(68).align(16).data(12).align(16).data(8);
}

// Version 2, nothing in it but one q4_0 tensor with the default alignment.
inline GgufWriter smallest_tensor() {
  GgufWriter file;
  file.header(1, 0, 2).tensor("w", {32}, 2, 0);
  return file.align(32).data(18);
}

}  // namespace ptxgen::testing

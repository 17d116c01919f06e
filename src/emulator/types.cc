#include "src/emulator/types.h"

#include <array>

namespace ptxgen::emulator {
namespace {

struct Row {
  Type type;
  std::string_view name;
  unsigned bits;
  bool is_signed, is_float;
};

constexpr std::array<Row, 27> kRows = {{
    {Type::kPred, "pred", 1, false, false},     {Type::kB8, "b8", 8, false, false},
    {Type::kB16, "b16", 16, false, false},      {Type::kB32, "b32", 32, false, false},
    {Type::kB64, "b64", 64, false, false},      {Type::kB128, "b128", 128, false, false},
    {Type::kU8, "u8", 8, false, false},         {Type::kU16, "u16", 16, false, false},
    {Type::kU32, "u32", 32, false, false},      {Type::kU64, "u64", 64, false, false},
    {Type::kS8, "s8", 8, true, false},          {Type::kS16, "s16", 16, true, false},
    {Type::kS32, "s32", 32, true, false},       {Type::kS64, "s64", 64, true, false},
    {Type::kF16, "f16", 16, false, true},       {Type::kF16x2, "f16x2", 32, false, true},
    {Type::kBf16, "bf16", 16, false, true},     {Type::kBf16x2, "bf16x2", 32, false, true},
    {Type::kF32, "f32", 32, false, true},       {Type::kF64, "f64", 64, false, true},
    {Type::kTf32, "tf32", 32, false, true},     {Type::kE4m3x2, "e4m3x2", 16, false, true},
    {Type::kE5m2x2, "e5m2x2", 16, false, true}, {Type::kS16x2, "s16x2", 32, true, false},
    {Type::kU16x2, "u16x2", 32, false, false},  {Type::kE4m3, "e4m3", 8, false, true},
    {Type::kE5m2, "e5m2", 8, false, true},
}};

constexpr const Row& row(Type type) {
  return kRows[static_cast<std::size_t>(type)];
}

}  // namespace

unsigned bits(Type type) {
  return row(type).bits;
}
bool is_signed(Type type) {
  return row(type).is_signed;
}
bool is_float(Type type) {
  return row(type).is_float;
}
std::string_view name(Type type) {
  return row(type).name;
}

std::optional<Type> find_type(std::string_view name) {
  for (const Row& r : kRows) {
    if (r.name == name) return r.type;
  }
  return std::nullopt;
}

std::string_view name(Space space) {
  switch (space) {
    case Space::kGeneric: return "generic";
    case Space::kGlobal: return "global";
    case Space::kShared:
    case Space::kCluster: return "shared";
    case Space::kConst: return "const";
    case Space::kParam: return "param";
    case Space::kLocal: return "local";
  }
  return "";
}

}  // namespace ptxgen::emulator

#include "tools/ptxgen/scalar.h"

#include <bit>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "ptxgen/strings.h"
#include "src/reference/narrow.h"

namespace ptxgen::tool {
namespace {

absl::Status refuse(std::string_view name, std::string_view text, std::string_view rule) {
  return absl::InvalidArgumentError(str_cat("--arg ", name, " is '", text, "'; give ", rule));
}

// An integer of `bytes` bytes. Wide is s64 or u64.
template <class Wide>
absl::StatusOr<u64> parse_integer(std::string_view name, std::string_view text, u8 bytes) {
  const int unused_bits = 64 - 8 * bytes;
  const Wide min = std::numeric_limits<Wide>::min() >> unused_bits;
  const Wide max = std::numeric_limits<Wide>::max() >> unused_bits;
  const bool digits = text.find_first_not_of("-0123456789") == text.npos;
  Wide value = 0;
  if (!digits || !absl::SimpleAtoi(std::string(text), &value) || value < min || value > max)
    return refuse(name, text, str_cat("a whole number from ", min, " to ", max));
  const u64 mask = ~u64{0} >> unused_bits;
  return static_cast<u64>(value) & mask;
}

absl::StatusOr<u64> parse_float(std::string_view name, std::string_view text, Type type) {
  double wide = 0;
  float narrow = 0;
  const std::string copy(text);
  if (!absl::SimpleAtod(copy, &wide) || !absl::SimpleAtof(copy, &narrow))
    return refuse(name, text, str_cat("a number, as 0.5, -1e-3, inf or nan, for type ", info(type).name));
  switch (type) {
    case Type::kF64: return std::bit_cast<u64>(wide);
    case Type::kF16: return reference::f32_to_f16(narrow);
    case Type::kBf16: return reference::f32_to_bf16(narrow);
    default: return std::bit_cast<u32>(narrow);
  }
}

}  // namespace

absl::StatusOr<u64> parse_scalar(std::string_view name, Type type, std::string_view text) {
  switch (type) {
    case Type::kPred:
      if (text != "0" && text != "1") return refuse(name, text, "0 or 1");
      return u64{text == "1"};
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64: return parse_integer<u64>(name, text, info(type).bytes);
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64: return parse_integer<s64>(name, text, info(type).bytes);
    case Type::kF16:
    case Type::kBf16:
    case Type::kF32:
    case Type::kF64: return parse_float(name, text, type);
    default:
      return absl::UnimplementedError(str_cat("--arg ", name, " has type ", info(type).name,
                                              ", which cannot be written as text; embed the kernel"));
  }
}

std::string scalar_text(Type type, u64 bits) {
  switch (type) {
    case Type::kPred:
    case Type::kU8:
    case Type::kU16:
    case Type::kU32:
    case Type::kU64: return str_cat(bits);
    case Type::kS8:
    case Type::kS16:
    case Type::kS32:
    case Type::kS64: {
      const int unused_bits = 64 - 8 * info(type).bytes;
      return str_cat(static_cast<s64>(bits << unused_bits) >> unused_bits);
    }
    case Type::kF16: return str_cat(reference::f16_to_f32(static_cast<u16>(bits)));
    case Type::kBf16: return str_cat(reference::bf16_to_f32(static_cast<u16>(bits)));
    case Type::kF32: return str_cat(std::bit_cast<float>(static_cast<u32>(bits)));
    case Type::kF64: return str_cat(std::bit_cast<double>(bits));
    default: return str_cat("0x", absl::Hex(bits));
  }
}

}  // namespace ptxgen::tool

// Field lists: what a descriptor's constants and a kernel's arguments are called, mean and may be, written
// once.
//
//   struct Dequant {
//     u32 k = 4096;
//     ElementType out_type = ElementType::kF32;
//     static constexpr auto fields() {
//       return std::tuple(field("k", &Dequant::k, "values in a row", {1, 1u << 20}),
//                         field("out_type", &Dequant::out_type, "type of the results"));
//     }
//   };
//
// Equality, hash, text form, command-line options and the check of bounds follow from the list. A field is a
// u32 with bounds, an enumeration with a specialisation of kEnumNames, or a struct with a field list of its
// own, whose fields count as the owner's. Of an enumeration bounds may leave out values. Bounds that depend
// on other fields are a member function, `Bounds (Dequant::*)() const`, at the place of the constant.
#pragma once

#include <array>
#include <bit>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "ptxgen/export.h"
#include "ptxgen/strings.h"
#include "ptxgen/types.h"

namespace ptxgen {

// Bounds of an integer field, both included; a legal value is a multiple of `multiple`.
struct PTXGEN_API Bounds {
  u32 min = 0;
  u32 max = 0xffffffff;
  u32 multiple = 1;
  std::string_view block_of = {};  // the format whose block `multiple` is: "q4_K"

  // "256 to 16777216, a multiple of 256 (a block of q4_K)"
  std::string to_string() const;
};

// The values of an enumeration from one to another.
template <class E>
constexpr Bounds between(E first, E last) {
  return {static_cast<u32>(first), static_cast<u32>(last)};
}

template <class Owner, class T>
struct Field {
  std::string_view name;
  T Owner::*member;
  std::string_view meaning;
  Bounds constant_bounds = {};
  Bounds (Owner::*own_bounds)() const = nullptr;  // instead, where they depend on other fields
  bool fixed = false;                             // part of the kernel's name, not an option
  bool optional = false;                          // 0 is always legal, and not written

  constexpr Bounds bounds(const Owner& owner) const {
    return own_bounds ? (owner.*own_bounds)() : constant_bounds;
  }
};

// A field that the kernel's name already gives. It counts for equality and hash, and shows in no listing.
template <class Owner, class T>
constexpr Field<Owner, T> fixed_field(std::string_view name, T Owner::*member) {
  return {.name = name, .member = member, .meaning = "", .fixed = true};
}

template <class Owner, class T>
constexpr Field<Owner, T> field(std::string_view name, T Owner::*member, std::string_view meaning,
                                Bounds bounds = {}) {
  return {.name = name, .member = member, .meaning = meaning, .constant_bounds = bounds};
}
template <class Owner, class T>
constexpr Field<Owner, T> field(std::string_view name, T Owner::*member, std::string_view meaning,
                                Bounds (Owner::*bounds)() const) {
  return {.name = name, .member = member, .meaning = meaning, .own_bounds = bounds};
}

// A field whose 0 leaves the choice to the kernel; other values obey the bounds.
template <class Owner>
constexpr Field<Owner, u32> optional_field(std::string_view name, u32 Owner::*member,
                                           std::string_view meaning, Bounds bounds = {.min = 1}) {
  return {.name = name, .member = member, .meaning = meaning, .constant_bounds = bounds, .optional = true};
}

// The fields of a member that has a list of its own.
template <class Owner, class T>
constexpr Field<Owner, T> fields_of(T Owner::*member) {
  return {.name = "", .member = member, .meaning = ""};
}

// The names of an enumeration's values, in their order: a field of that type is written with them.
template <class E>
inline constexpr std::array<std::string_view, 0> kEnumNames = {};

// A field without its types, for listings.
struct FieldInfo {
  std::string_view name;
  std::string_view meaning;
  Bounds bounds;                                 // of an integer field
  std::vector<std::string_view> allowed_values;  // of an enumeration, within the bounds
  std::string default_value;
  bool optional = false;  // 0 leaves the choice to the kernel
};

namespace detail {

template <class T>
std::string field_text(const T& value) {
  if constexpr (std::is_enum_v<T>) {
    if constexpr (kEnumNames<T>.empty()) return {};
    return std::string(kEnumNames<T>[static_cast<std::size_t>(value)]);
  } else {
    return str_cat(value);
  }
}

PTXGEN_API absl::Status parse_integer(std::string_view name, std::string_view text, u32& value);
PTXGEN_API absl::Status check_bounds(std::string_view name, u32 value, const Bounds& bounds);
PTXGEN_API absl::Status unknown_name(std::string_view field, std::string_view text,
                                     const std::vector<std::string_view>& allowed);

template <class E>
std::vector<std::string_view> names_within(const Bounds& bounds) {
  std::vector<std::string_view> names;
  for (std::size_t i = bounds.min; i < kEnumNames<E>.size() && i <= bounds.max; ++i)
    names.push_back(kEnumNames<E>[i]);
  return names;
}

template <class T>
absl::Status parse_field(std::string_view name, std::string_view text, const Bounds& bounds, T& value) {
  if constexpr (std::is_enum_v<T>) {
    for (std::size_t i = bounds.min; i < kEnumNames<T>.size() && i <= bounds.max; ++i) {
      if (kEnumNames<T>[i] == text) {
        value = static_cast<T>(i);
        return absl::OkStatus();
      }
    }
    return unknown_name(name, text, names_within<T>(bounds));
  } else {
    return parse_integer(name, text, value);
  }
}

template <class T>
absl::Status check_field(std::string_view name, T value, const Bounds& bounds) {
  if constexpr (std::is_enum_v<T>) {
    const u32 number = static_cast<u32>(value);
    if (number >= bounds.min && number <= bounds.max) return absl::OkStatus();
    return unknown_name(name, field_text(value), names_within<T>(bounds));
  } else {
    return check_bounds(name, value, bounds);
  }
}

}  // namespace detail

template <class T>
concept HasFields = requires {
  T::fields();
};

// Calls f(field, owner) for every field, those of nested lists with the member that holds them.
template <class D, class F>
void for_each_field(D& owner, F&& f) {
  std::apply(
      [&](const auto&... fields) {
        const auto visit = [&](const auto& field) {
          if constexpr (HasFields<std::remove_cvref_t<decltype(owner.*field.member)>>) {
            for_each_field(owner.*field.member, f);
          } else {
            f(field, owner);
          }
        };
        (visit(fields), ...);
      },
      std::remove_const_t<D>::fields());
}

// "k=4096 n=11008 out_type=f16"
template <class D>
std::string text_of_fields(const D& owner) {
  std::string text;
  for_each_field(owner, [&](const auto& f, const auto& holder) {
    if (f.fixed) return;
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(holder.*f.member)>, u32>) {
      if (f.optional && holder.*f.member == 0) return;
    }
    str_append(&text, text.empty() ? "" : " ", f.name, "=", detail::field_text(holder.*f.member));
  });
  return text;
}

template <class D>
bool equal_fields(const D& a, const D& b) {
  const auto equal = [](const auto& left, const auto& right) {
    if constexpr (HasFields<std::remove_cvref_t<decltype(left)>>) {
      return equal_fields(left, right);
    } else {
      return left == right;
    }
  };
  return std::apply([&](const auto&... f) { return (equal(a.*f.member, b.*f.member) && ...); }, D::fields());
}

// The values folded into one word, a multiplication each (as FxHash does): a lookup in a cache pays for every
// step, and compares the fields in full anyway.
template <class D>
u64 hash_fields(const D& owner) {
  u64 word = 0;
  for_each_field(owner, [&](const auto& f, const auto& holder) {
    word = (std::rotl(word, 5) ^ static_cast<u64>(holder.*f.member)) * 0x9e3779b97f4a7c15;
  });
  return word;
}

// Every field within its bounds, or a status that names the field, its value and the rule.
template <class D>
absl::Status check_fields(const D& owner) {
  absl::Status status;
  for_each_field(owner, [&](const auto& f, const auto& holder) {
    const bool left_out = f.optional && static_cast<u32>(holder.*f.member) == 0;
    if (status.ok() && !f.fixed && !left_out)
      status = detail::check_field(f.name, holder.*f.member, f.bounds(holder));
  });
  return status;
}

// Sets the field called `name` from its text; kNotFound when there is none.
template <class D>
absl::Status set_field(D& owner, std::string_view name, std::string_view text) {
  absl::Status status = absl::NotFoundError(str_cat("no field is called '", name, "'"));
  for_each_field(owner, [&](const auto& f, auto& holder) {
    if (f.name == name && !f.fixed)
      status = detail::parse_field(name, text, f.bounds(holder), holder.*f.member);
  });
  return status;
}

template <class D>
std::vector<FieldInfo> field_infos(const D& defaults) {
  std::vector<FieldInfo> infos;
  for_each_field(defaults, [&](const auto& f, const auto& holder) {
    using T = std::remove_cvref_t<decltype(holder.*f.member)>;
    if (f.fixed) return;
    FieldInfo info{f.name, f.meaning, f.bounds(holder), {}, detail::field_text(holder.*f.member), f.optional};
    if constexpr (std::is_enum_v<T>) info.allowed_values = detail::names_within<T>(info.bounds);
    infos.push_back(std::move(info));
  });
  return infos;
}

}  // namespace ptxgen

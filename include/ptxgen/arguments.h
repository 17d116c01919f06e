// What a kernel is launched with. An Args struct holds everything that varies per launch; its field list says
// which members are buffers, in which direction, and how many bytes each covers for a given descriptor.
//
//   struct Args {
//     DevicePtr<const std::byte> weights;
//     DevicePtr<float> out;
//     static constexpr auto fields() {
//       return std::tuple(input("weights", &Args::weights, &Dequant::weight_bytes),
//                         output("out", &Args::out, &Dequant::out_bytes));
//     }
//   };
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "ptxgen/types.h"

namespace ptxgen {

// A device address as a host value, with what the kernel may rely on: the element type and the alignment in
// bytes.
template <class T, std::size_t Align = alignof(T)>
struct DevicePtr {
  u64 address = 0;
  using element_type = T;
  static constexpr std::size_t kAlign = Align;
};

enum class Direction : u8 { kIn, kOut, kInOut, kScalar };

// A member of Args. `Bytes` is a member function of the descriptor: u64 (D::*)(const Args&) const, the extent
// in bytes that the kernel may touch; std::nullptr_t for a scalar. `Alignment` is one too: std::size_t
// (D::*)() const, where the alignment that the kernel relies on is not the pointer type's.
template <class Owner, class T, class Bytes, class Alignment = std::nullptr_t>
struct Argument {
  std::string_view name;
  T Owner::*member;
  Direction direction;
  Bytes bytes;
  Alignment alignment;
};

template <class Owner, class T, std::size_t A, class Bytes, class Alignment = std::nullptr_t>
constexpr auto input(std::string_view name, DevicePtr<const T, A> Owner::*member, Bytes bytes,
                     Alignment alignment = nullptr) {
  return Argument<Owner, DevicePtr<const T, A>, Bytes, Alignment>{name, member, Direction::kIn, bytes,
                                                                  alignment};
}
template <class Owner, class T, std::size_t A, class Bytes, class Alignment = std::nullptr_t>
requires(!std::is_const_v<T>) constexpr auto output(std::string_view name, DevicePtr<T, A> Owner::*member, Bytes bytes,
                      Alignment alignment = nullptr) {
  return Argument<Owner, DevicePtr<T, A>, Bytes, Alignment>{name, member, Direction::kOut, bytes, alignment};
}
template <class Owner, class T, std::size_t A, class Bytes, class Alignment = std::nullptr_t>
requires(!std::is_const_v<T>) constexpr auto inout(std::string_view name, DevicePtr<T, A> Owner::*member, Bytes bytes,
                     Alignment alignment = nullptr) {
  return Argument<Owner, DevicePtr<T, A>, Bytes, Alignment>{name, member, Direction::kInOut, bytes,
                                                            alignment};
}
template <class Owner, DeviceType T>
requires(!std::same_as<T, pred>)  // PTX has no parameters of type .pred
    constexpr auto scalar(std::string_view name, T Owner::*member) {
  return Argument<Owner, T, std::nullptr_t>{name, member, Direction::kScalar, nullptr, nullptr};
}

template <class Owner>
constexpr auto tensor_map(std::string_view name, TensorMap Owner::*member) {
  return Argument<Owner, TensorMap, std::nullptr_t>{name, member, Direction::kScalar, nullptr, nullptr};
}

namespace detail {
template <class T>
struct ArgumentTraits {  // a scalar, or a TensorMap
  static constexpr Type kType = type_of<T>;
  static constexpr std::size_t kAlign = alignof(T);
  static constexpr bool kIsPointer = false;
};
template <class T, std::size_t Align>
struct ArgumentTraits<DevicePtr<T, Align>> {
  static constexpr Type kType = Type::kU64;
  static constexpr std::size_t kAlign = Align;
  static constexpr bool kIsPointer = true;
};
}  // namespace detail

}  // namespace ptxgen

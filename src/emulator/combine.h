// The operations that combine two values into one: of atom, red and redux, and of the logic instructions.
#pragma once

#include <algorithm>
#include <type_traits>

#include "src/emulator/numerics.h"

namespace ptxgen::emulator {

struct Add {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
    } else if constexpr (sizeof(T) == 2) {
      return from_double<T>(add_odd(to_double(a), to_double(b)), Rounding::kNearestEven);
    } else {
      const T sum = a + b;
      return is_nan(sum) ? nan_result(b, a) : sum;
    }
  }
};
struct Min {
  template <class T>
  static T apply(T a, T b) {
    return std::min(a, b);
  }
};
struct Max {
  template <class T>
  static T apply(T a, T b) {
    return std::max(a, b);
  }
};
struct And {
  template <class T>
  static T apply(T a, T b) {
    return a & b;
  }
};
struct Or {
  template <class T>
  static T apply(T a, T b) {
    return a | b;
  }
};
struct Xor {
  template <class T>
  static T apply(T a, T b) {
    return a ^ b;
  }
};

}  // namespace ptxgen::emulator

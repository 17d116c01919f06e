// An address in device memory, as kernel arguments carry it.
#pragma once

#include <cstdint>
#include <type_traits>

namespace ptxgen {

// Eight bytes, passed to a kernel as `.param .u64`. It owns nothing and is never dereferenced on the host;
// `Buffer` owns memory and makes these. A pointer to T converts to one to const T, not back.
template <class T>
struct DevicePtr {
  using Element = T;

  std::uint64_t address = 0;

  constexpr bool operator==(const DevicePtr&) const = default;

  constexpr operator DevicePtr<const T>() const requires(!std::is_const_v<T>) { return {address}; }
};

}  // namespace ptxgen

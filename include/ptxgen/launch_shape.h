// How many threads a launch starts, and what they share.
#pragma once

#include <cstdint>

namespace ptxgen {

// Extents in x, y, z. 64-bit, so that a product of tensor extents arrives whole at the check before a launch.
struct Dim3 {
  std::uint64_t x = 1, y = 1, z = 1;

  constexpr Dim3() = default;
  constexpr Dim3(std::uint64_t x_, std::uint64_t y_ = 1, std::uint64_t z_ = 1) : x(x_), y(y_), z(z_) {}

  constexpr bool operator==(const Dim3&) const = default;
  constexpr bool empty() const { return x == 0 || y == 0 || z == 0; }
  // The product; it wraps for extents far beyond what a launch accepts.
  constexpr std::uint64_t count() const { return x * y * z; }
};

struct LaunchShape {
  Dim3 grid = {};                          // CTAs; an empty grid launches nothing and succeeds
  Dim3 block = {};                         // threads of a CTA
  std::uint64_t dynamic_shared_bytes = 0;  // on top of what the kernel declares
  Dim3 cluster = {};                       // CTAs of a cluster (sm_90 and later); {1, 1, 1} is none

  constexpr bool operator==(const LaunchShape&) const = default;
};

}  // namespace ptxgen

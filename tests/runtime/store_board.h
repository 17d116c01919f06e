// What the processes of store_worker.cc share.
#pragma once

#include <atomic>

namespace ptxgen::testing {

inline constexpr int kMaxRounds = 64;

// In a file that all have mapped.
struct Board {
  std::atomic<int> members;  // that meet in each round
  std::atomic<int> arrived[kMaxRounds];
  std::atomic<int> compiles[kMaxRounds];
};
static_assert(std::atomic<int>::is_always_lock_free);

}  // namespace ptxgen::testing

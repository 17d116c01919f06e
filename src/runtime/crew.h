// A number of independent pieces of work on a bounded number of threads.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace ptxgen::internal {

// Does work(0) to work(count - 1); the thread that has made the crew learns of each that is finished. Ends
// its threads, and what they have not begun, with its life.
class Crew {
 public:
  // `threads`: that many, or as many as the system gives; 0: the caller's own, before this returns.
  Crew(std::size_t count, std::size_t threads, std::function<void(std::size_t)> work);
  ~Crew();
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  // The next that is finished, after waiting for it; to be called `count` times. What work(i) wrote can be
  // read then.
  std::size_t take();

 private:
  void work_on();

  const std::size_t count_;
  const std::function<void(std::size_t)> work_;
  std::vector<std::thread> threads_;

  std::mutex mutex_;  // guards the rest
  std::condition_variable finished_one_;
  std::size_t next_ = 0;
  std::vector<std::size_t> finished_;
  std::size_t taken_ = 0;
};

// `wanted`, or one a processor, at most 16, where that is 0.
std::size_t crew_size(std::size_t wanted);

}  // namespace ptxgen::internal

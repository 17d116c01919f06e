#include "src/runtime/crew.h"

#include <algorithm>
#include <system_error>
#include <utility>

namespace ptxgen::internal {

Crew::Crew(std::size_t count, std::size_t threads, std::function<void(std::size_t)> work)
    : count_(count), work_(std::move(work)) {
  try {
    while (threads_.size() < std::min(threads, count)) threads_.emplace_back([this] { work_on(); });
  } catch (const std::system_error&) {  // there are no more
  }
  if (threads_.empty()) work_on();
}

Crew::~Crew() {
  {
    const std::lock_guard lock(mutex_);
    next_ = count_;
  }
  for (std::thread& thread : threads_) thread.join();
}

void Crew::work_on() {
  std::unique_lock lock(mutex_);
  while (next_ < count_) {
    const std::size_t i = next_++;
    lock.unlock();
    work_(i);
    lock.lock();
    finished_.push_back(i);
    finished_one_.notify_one();
  }
}

std::size_t Crew::take() {
  std::unique_lock lock(mutex_);
  finished_one_.wait(lock, [this] { return taken_ < finished_.size(); });
  return finished_[taken_++];
}

std::size_t crew_size(std::size_t wanted) {
  constexpr unsigned kDefault = 16;
  return wanted != 0 ? wanted : std::clamp(std::thread::hardware_concurrency(), 1u, kDefault);
}

}  // namespace ptxgen::internal

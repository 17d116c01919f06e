// An executor's scratch memory, on the emulated device, or on CUDA device 0 when PTXGEN_TEST_DEVICE is
// "cuda".
#include "src/runtime/scratch.h"

#include <vector>

#include "src/runtime/device_state.h"
#include "tests/kernels/harness.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

using internal::ScratchPool;
using testing::contains;
using testing::ok;
using testing::take;
using testing::test_device;

u64 address(ScratchPool& pool, const Stream& stream, u64 bytes) {
  auto scratch = take(pool.take(stream, bytes));
  ok(scratch.done(stream));
  return scratch.address();
}

TEST_CASE("streams have scratch memory of their own, which grows", "[runtime][scratch][device]") {
  ScratchPool pool(test_device());
  const Stream one = take(test_device().create_stream()), two = take(test_device().create_stream());
  const u64 first = address(pool, one, 1000), second = address(pool, two, 1000);
  CHECK(first != second);
  CHECK(address(pool, one, 1000) == first);
  CHECK(address(pool, one, 10) == first);
  CHECK(address(pool, two, 1000) == second);
  // As large as it is asked for: a write to its end lands in it.
  const u64 larger = address(pool, one, 1 << 20);
  const internal::DeviceState& state = *internal::DeviceAccess::state(test_device());
  ok(state.backend().fill(larger, 1, 1 << 20, one.native()));
  ok(one.synchronize());
}

TEST_CASE("of many streams the eldest hand over their scratch memory", "[runtime][scratch][device]") {
  ScratchPool pool(test_device());
  std::vector<Stream> streams;
  std::vector<u64> addresses;
  for (std::size_t i = 0; i < ScratchPool::kMostBlocks; ++i) {
    streams.push_back(take(test_device().create_stream()));
    addresses.push_back(address(pool, streams.back(), 1000));
  }
  const Stream further = take(test_device().create_stream());
  CHECK(address(pool, further, 1000) == addresses[0]);
  CHECK(address(pool, streams[0], 1000) == addresses[1]);
  CHECK(address(pool, further, 1000) == addresses[0]);
}

TEST_CASE("recordings take what is ready, and keep it", "[runtime][scratch][device]") {
  ScratchPool pool(test_device());
  const Stream one = take(test_device().create_stream()), two = take(test_device().create_stream());
  const auto recorded = [&](const Stream& stream, u64 bytes) {
    ok(stream.begin_capture());
    auto scratch = pool.take(stream, bytes);
    const absl::StatusOr<u64> result =
        scratch.ok() ? absl::StatusOr<u64>(scratch->address()) : scratch.status();
    if (scratch.ok()) ok(scratch->done(stream));
    ok(stream.end_capture().status());
    return result;
  };
  CHECK(contains(recorded(one, 1000).status().message(), "no block of that size is free"));
  ok(pool.prepare(1000));
  CHECK_FALSE(recorded(one, 1001).ok());
  const u64 first = take(recorded(one, 1000));
  CHECK(take(recorded(one, 10)) == first);
  CHECK_FALSE(recorded(two, 1000).ok());  // the one block is another's
  ok(pool.prepare(1000));
  const u64 second = take(recorded(two, 1000));
  CHECK(second != first);
  // What grows leaves the graphs what they have, and no stream takes it over.
  CHECK(address(pool, one, 5000) != first);
  for (std::size_t i = 0; i < 2 * ScratchPool::kMostBlocks; ++i) {
    const Stream further = take(test_device().create_stream());
    const u64 other = address(pool, further, 1000);
    CHECK((other != first && other != second));
  }
  ok(pool.prepare(6000));
  CHECK(recorded(two, 6000).ok());
}

}  // namespace
}  // namespace ptxgen

// The copies of weights that an executor keeps, on the emulated device, or on CUDA device 0 when
// PTXGEN_TEST_DEVICE is "cuda".
#include "src/runtime/weight_copies.h"

#include "tests/kernels/harness.h"
#include "tests/runtime/layer.h"
#include "tests/support/catch.h"

namespace ptxgen {
namespace {

using internal::WeightCopies;
using internal::WeightCopyPtr;
using testing::contains;
using testing::ok;
using testing::random_weights;
using testing::take;
using testing::test_device;

constexpr u64 kBytes = 1000;

WeightMatrix matrix(u64 seed) {
  return random_weights(test_device(), Format::kQ8_0, 3, 32, seed);
}

struct Setup {
  absl::Status make(const WeightMatrix& weights, ElementType type = ElementType::kF16, u64 bytes = kBytes) {
    return copies
        .find_or_make(weights, type, bytes,
                      [&](const Buffer& to) {
                        ++fills;
                        return to.bytes() == bytes ? absl::OkStatus() : absl::InternalError("size");
                      })
        .status();
  }
  bool has(const WeightMatrix& weights, ElementType type = ElementType::kF16) {
    return copies.find(weights, type) != nullptr;
  }

  WeightCopies copies{test_device(), 3 * kBytes + 10};
  int fills = 0;
};

TEST_CASE("copies are found by the handle of their matrix", "[runtime][copies]") {
  Setup setup;
  const WeightMatrix a = matrix(1), same = a;
  const WeightMatrix lies_there =
      take(WeightMatrix::borrow(a.format(), a.n(), a.k(), a.address(), a.bytes()));
  ok(setup.make(a));
  ok(setup.make(same));
  CHECK(setup.fills == 1);
  CHECK(setup.has(same));
  CHECK_FALSE(setup.has(a, ElementType::kE4m3));
  CHECK_FALSE(setup.has(lies_there));
  setup.copies.set_largest(a, 5);
  CHECK(setup.copies.largest(same) == 5);
  CHECK_FALSE(setup.copies.largest(lies_there));
  setup.copies.release(same);
  CHECK_FALSE(setup.has(a));
  CHECK_FALSE(setup.copies.largest(a));
  CHECK(setup.copies.bytes() == 0);
  setup.copies.release(a);
}

TEST_CASE("copies used longest ago make room", "[runtime][copies]") {
  Setup setup;
  const WeightMatrix a = matrix(1), b = matrix(2), c = matrix(3), d = matrix(4);
  for (const WeightMatrix& weights : {a, b, c}) ok(setup.make(weights));
  CHECK(setup.copies.bytes() == 3 * kBytes);
  CHECK(setup.has(a));  // b is the one used longest ago
  ok(setup.make(d));
  CHECK_FALSE(setup.has(b));
  CHECK((setup.has(a) && setup.has(c) && setup.has(d)));
  CHECK(setup.copies.bytes() == 3 * kBytes);
  ok(setup.make(b, ElementType::kE4m3, 2 * kBytes + 10));  // two go
  CHECK((setup.has(d) && !setup.has(a) && !setup.has(c)));
}

TEST_CASE("copies that a call or a graph reads stay", "[runtime][copies][device]") {
  Setup setup;
  const Stream stream = take(test_device().create_stream());
  const WeightMatrix a = matrix(1), b = matrix(2), c = matrix(3), d = matrix(4);
  for (const WeightMatrix& weights : {a, b, c}) ok(setup.make(weights));
  const WeightCopyPtr held = setup.copies.find(a, ElementType::kF16);
  ok(setup.copies.find(b, ElementType::kF16)->read_by(stream, true));
  ok(setup.copies.find(c, ElementType::kF16)->read_by(stream, false));
  ok(setup.make(d));
  CHECK((setup.has(a) && setup.has(b) && !setup.has(c)));
  CHECK(contains(setup.make(c, ElementType::kF16, 2 * kBytes).message(),
                 "has no room beside those in use within the budget of 3010 bytes"));
  CHECK(setup.copies.bytes() == 2 * kBytes);
  setup.copies.release(b);
  ok(setup.make(c, ElementType::kF16, 2 * kBytes));
  CHECK(setup.has(a));
}

TEST_CASE("copies of matrices that are gone make room first", "[runtime][copies]") {
  Setup setup;
  const WeightMatrix a = matrix(1), c = matrix(3);
  ok(setup.make(a));
  {
    const WeightMatrix gone = matrix(2);
    ok(setup.make(gone));
  }
  ok(setup.make(c));
  ok(setup.make(matrix(4)));
  CHECK((setup.has(a) && setup.has(c)));
  CHECK(setup.copies.bytes() == 3 * kBytes);
}

TEST_CASE("a copy that cannot be made leaves nothing behind", "[runtime][copies]") {
  Setup setup;
  const WeightMatrix a = matrix(1);
  CHECK(contains(setup.make(a, ElementType::kF16, 3011).message(), "is more than the budget of 3010 bytes"));
  const auto failed = setup.copies.find_or_make(a, ElementType::kF16, kBytes,
                                                [](const Buffer&) { return absl::InternalError("no"); });
  CHECK(failed.status().message() == "no");
  CHECK(setup.copies.bytes() == 0);
  CHECK_FALSE(setup.has(a));
}

}  // namespace
}  // namespace ptxgen

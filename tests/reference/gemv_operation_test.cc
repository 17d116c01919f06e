#include "src/reference/gemv_operation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "src/reference/layer.h"
#include "src/reference/product.h"
#include "tests/support/catch.h"
#include "tests/support/status.h"

namespace ptxgen::reference {
namespace {

using testing::take;
using Bytes = std::vector<std::byte>;

struct Inputs {
  std::vector<Bytes> of;  // by argument
  absl::Status operator()(std::size_t argument, u64 offset, absl::Span<std::byte> piece) const {
    REQUIRE(argument < of.size());
    REQUIRE(offset + piece.size() <= of[argument].size());
    std::copy_n(of[argument].begin() + static_cast<std::ptrdiff_t>(offset), piece.size(), piece.begin());
    return absl::OkStatus();
  }
};

std::unique_ptr<Operation> operation(const KernelType& kernel, std::vector<u64> values = {}) {
  if (values.empty()) values = kernel->default_arguments();
  return take(operation_of(kernel, values));
}

Inputs inputs_of(const Operation& operation, u64 seed) {
  Inputs inputs;
  for (std::size_t i = 0; i < operation.arguments().size(); ++i) {
    Bytes& input = inputs.of.emplace_back();
    if (!operation.reads(i)) continue;
    input.resize(operation.arguments()[i].bytes);
    testing::ok(operation.make_input(i, seed, 0, absl::MakeSpan(input)));
  }
  return inputs;
}

std::vector<float> floats(const Bytes& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Bytes expected(const Operation& operation, std::size_t argument, const Inputs& inputs) {
  Bytes all(operation.arguments()[argument].bytes);
  testing::ok(operation.expect(argument, 0, inputs, absl::MakeSpan(all)));
  return all;
}

// More rows than are read at once.
Gemv tall(Schedule schedule, Activations x_type = Activations::kF32) {
  return {.format = Format::kQ5_K, .k = 512, .n = 3100, .schedule = schedule, .x_type = x_type};
}

TEST_CASE("a product's rows are those of the reference, also in pieces", "[reference]") {
  const auto op = operation(tall(Schedule::kWarp));
  CHECK(op->is_bounded(2));
  const Inputs inputs = inputs_of(*op, 3);
  const Bytes y = expected(*op, 2, inputs);
  const std::vector<float> values = floats(y), x = floats(inputs.of[1]);
  const std::size_t row_bytes = inputs.of[0].size() / 3100;
  for (const std::size_t row : {0u, 1u, 2978u, 2979u, 3099u}) {
    const auto weights = absl::MakeConstSpan(inputs.of[0]).subspan(row * row_bytes, row_bytes);
    CHECK(values[row] == static_cast<float>(dot(Format::kQ5_K, weights, x).value));
  }
  Bytes piece(4 * 7);
  testing::ok(op->expect(2, 4 * 2975, inputs, absl::MakeSpan(piece)));
  CHECK(std::equal(piece.begin(), piece.end(), y.begin() + 4 * 2975));
  CHECK(take(op->check(2, 0, inputs, y)).equal());
  CHECK(take(op->check(2, 4 * 2975, inputs, piece)).equal());
}

TEST_CASE("a product that breaks its bound is found, with its place", "[reference]") {
  const auto op = operation(tall(Schedule::kWarp));
  const Inputs inputs = inputs_of(*op, 4);
  Bytes piece(4 * 5);
  testing::ok(op->expect(2, 4 * 100, inputs, absl::MakeSpan(piece)));
  const float right = floats(piece)[3];
  const float wrong = right * (1 + 1e-3f);
  std::memcpy(&piece[12], &wrong, 4);
  const Comparison found = take(op->check(2, 4 * 100, inputs, piece));
  REQUIRE(found.mismatches == 1);
  CHECK(found.first[0].index == 103);
  CHECK(found.first[0].expected == std::bit_cast<u32>(right));
  CHECK(found.first[0].actual == std::bit_cast<u32>(wrong));
  CHECK(found.first[0].bound > 0);
  CHECK(found.worst > 1);
}

TEST_CASE("schedules on int8 multiply the quantised activations", "[reference]") {
  const Inputs inputs = inputs_of(*operation(tall(Schedule::kWarp)), 5);
  const Bytes exact = expected(*operation(tall(Schedule::kTiled)), 2, inputs);
  CHECK(expected(*operation(tall(Schedule::kCoalesced)), 2, inputs) == exact);
  Inputs quantized = inputs;
  quantized.of[1].resize(512 / kQ8_1Values * kQ8_1Bytes);
  testing::ok(quantize_q8_1(floats(inputs.of[1]), absl::MakeSpan(quantized.of[1])));
  for (const Schedule schedule : {Schedule::kMultiWarpDp4a, Schedule::kHalfWarpDp4a, Schedule::kStream}) {
    const Bytes y = expected(*operation(tall(schedule)), 2, inputs);
    CHECK(y != exact);
    CHECK(expected(*operation(tall(schedule, Activations::kQ8_1)), 2, quantized) == y);
  }
  // What is made for an argument of int8 is what is made for f32, quantised.
  const auto prepared = operation(tall(Schedule::kStream, Activations::kQ8_1));
  CHECK(inputs_of(*prepared, 5).of[1] == quantized.of[1]);
}

TEST_CASE("every row of a batch is the product of its row of x", "[reference]") {
  const BatchedGemv kernel{.format = Format::kQ4_0, .k = 96, .n = 7, .max_m = 4};
  const auto op = operation(kernel, {0, 0, 0, 3});
  REQUIRE(op->arguments()[1].bytes == 3 * 96 * 4);
  const Inputs inputs = inputs_of(*op, 9);
  const std::vector<float> y = floats(expected(*op, 2, inputs));
  REQUIRE(y.size() == 3 * 7);
  for (std::size_t m = 0; m < 3; ++m) {
    Inputs one = inputs;
    one.of[1].assign(inputs.of[1].begin() + static_cast<std::ptrdiff_t>(m * 384),
                     inputs.of[1].begin() + static_cast<std::ptrdiff_t>((m + 1) * 384));
    const auto row = operation(Gemv{.format = Format::kQ4_0, .k = 96, .n = 7});
    const std::vector<float> alone = floats(expected(*row, 2, one));
    CHECK(std::equal(alone.begin(), alone.end(), y.begin() + static_cast<std::ptrdiff_t>(7 * m)));
  }
  Bytes piece(4 * 9);  // from the middle of one row to the middle of another
  testing::ok(op->expect(2, 4 * 5, inputs, absl::MakeSpan(piece)));
  const std::vector<float> part = floats(piece);
  CHECK(std::equal(part.begin(), part.end(), y.begin() + 5));
}

constexpr float kEpsilon = 1e-3f;

std::unique_ptr<Operation> fused(const FusedGemv& kernel) {
  return operation(kernel, {0, 0, 0, 0, 0, 0, 0, 0, 0, std::bit_cast<u32>(kEpsilon)});
}

// The product that the fused one has at its place, from the parts that were tested on their own.
Bounded by_hand(const Inputs& inputs, std::size_t weights, Format format, std::size_t row) {
  const std::vector<float> x = floats(inputs.of[3]), gamma = floats(inputs.of[4]);
  const std::size_t row_bytes = x.size() / info(format).block_values * info(format).block_bytes;
  return dot(format, absl::MakeConstSpan(inputs.of[weights]).subspan(row * row_bytes, row_bytes),
             quantize_q8_1(absl::MakeConstSpan(rms_norm(x, gamma, kEpsilon))));
}

TEST_CASE("fused products are those of the normalised activations, each in its format", "[reference]") {
  const auto op = fused({.format = Format::kQ4_K,
                         .k = 512,
                         .n = 5,
                         .format_b = Format::kQ6_K,
                         .format_c = Format::kQ2_K,
                         .n_b = 3,
                         .n_c = 4,
                         .norm = Norm::kRms});
  const Inputs inputs = inputs_of(*op, 10);
  for (const auto& [weights, format, rows] :
       {std::tuple(0u, Format::kQ4_K, 5u), std::tuple(1u, Format::kQ6_K, 3u),
        std::tuple(2u, Format::kQ2_K, 4u)}) {
    const std::vector<float> y = floats(expected(*op, 6 + weights, inputs));
    REQUIRE(y.size() == rows);
    for (std::size_t row = 0; row < rows; ++row)
      CHECK(y[row] == static_cast<float>(by_hand(inputs, weights, format, row).value));
  }
}

TEST_CASE("fused products are combined and added to a residual", "[reference]") {
  FusedGemv kernel{.format = Format::kQ5_0, .k = 64, .n = 9, .format_b = Format::kQ5_0, .n_b = 9};
  kernel.norm = Norm::kRms;
  kernel.combine = Combine::kSwiglu;
  const auto op = fused(kernel);
  const Inputs inputs = inputs_of(*op, 11);
  const std::vector<float> y = floats(expected(*op, 6, inputs));
  for (std::size_t row = 0; row < 9; ++row) {
    const Bounded gate = by_hand(inputs, 0, Format::kQ5_0, row), up = by_hand(inputs, 1, Format::kQ5_0, row);
    CHECK(y[row] == static_cast<float>(swiglu(gate, up).value));
  }

  const auto added = fused({.format = Format::kQ5_0, .k = 64, .n = 9, .residual = Residual::kAdd});
  const Inputs more = inputs_of(*added, 12);
  const std::vector<float> residual = floats(more.of[5]);
  const std::vector<float> sums = floats(expected(*added, 6, more));
  const auto plain = fused({.format = Format::kQ5_0, .k = 64, .n = 9});
  const std::vector<float> products = floats(expected(*plain, 6, more));
  for (std::size_t row = 0; row < 9; ++row)
    CHECK(sums[row] == Approx(residual[row] + products[row]).epsilon(1e-5));
}

TEST_CASE("one NaN surfaces in every row, and is expected nowhere else", "[reference]") {
  const auto op = operation(tall(Schedule::kWarp));
  Inputs inputs = inputs_of(*op, 6);
  const Bytes good = expected(*op, 2, inputs);
  const float nan = std::nanf("");
  std::memcpy(&inputs.of[1][400], &nan, 4);
  const std::vector<float> y = floats(expected(*op, 2, inputs));
  CHECK(std::all_of(y.begin(), y.end(), [](float value) { return std::isnan(value); }));
  CHECK(take(op->check(2, 0, inputs, good)).mismatches == 3100);
}

TEST_CASE("quantised blocks are compared bit for bit, but all NaN blocks are alike", "[reference]") {
  const auto op = operation(QuantizeQ8_1{.k = 96}, {0, 0, 5});
  Inputs inputs = inputs_of(*op, 7);
  REQUIRE(inputs.of[0].size() == 5 * 96 * 4);
  const float nan = std::nanf("");
  std::memcpy(&inputs.of[0][3 * 128], &nan, 4);
  Bytes blocks = expected(*op, 1, inputs);
  REQUIRE(blocks.size() == 15 * kQ8_1Bytes);
  for (std::size_t i = 3 * 36; i < 4 * 36; ++i) blocks[i] = std::byte{0xff};
  CHECK(take(op->check(1, 0, inputs, blocks)).equal());
  blocks[7 * 36 + 9] ^= std::byte{1};
  const Comparison found = take(op->check(1, 0, inputs, blocks));
  CHECK(found.mismatches == 1);
  CHECK(found.first[0].index == 7 * 36 + 9);
}

TEST_CASE("input does not depend on how it is cut", "[reference]") {
  for (const KernelType& kernel :
       {KernelType(tall(Schedule::kStream)), KernelType(tall(Schedule::kStream, Activations::kQ8_1)),
        KernelType(QuantizeQ8_1{.k = 1u << 16})}) {
    CAPTURE(kernel->text());
    const auto op = operation(kernel);
    const Inputs whole = inputs_of(*op, 8);
    for (std::size_t argument = 0; argument < whole.of.size(); ++argument) {
      if (!op->reads(argument)) continue;
      const u64 unit = op->unit(argument), bytes = whole.of[argument].size();
      for (const u64 count : {u64{1}, u64{5}}) {
        const u64 offset = bytes / unit / 2 * unit;
        Bytes piece(count * unit);
        testing::ok(op->make_input(argument, 8, offset, absl::MakeSpan(piece)));
        CHECK(std::equal(piece.begin(), piece.end(),
                         whole.of[argument].begin() + static_cast<std::ptrdiff_t>(offset)));
      }
    }
  }
}

TEST_CASE("what cannot be read is no comparison", "[reference]") {
  const auto op = operation(tall(Schedule::kStream));
  const auto read = [](std::size_t, u64, absl::Span<std::byte>) { return absl::DataLossError("torn"); };
  Bytes piece(8);
  CHECK(op->check(2, 0, read, piece).status().message() == "torn");
  CHECK(op->expect(2, 0, read, absl::MakeSpan(piece)).message() == "torn");
}

}  // namespace
}  // namespace ptxgen::reference

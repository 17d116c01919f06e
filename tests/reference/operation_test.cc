#include "src/reference/operation.h"

#include <algorithm>

#include "ptxgen/kernels.h"
#include "tests/support/catch.h"

namespace ptxgen::reference {
namespace {

using Bytes = std::vector<std::byte>;

// More blocks than are made with one seed, and no whole number of those.
const KernelType kKernels[] = {Dequant{Format::kQ4_0, 96, 1001, ElementType::kF32},
                               Dequant{Format::kQ6_K, 512, 1033, ElementType::kBf16}, Copy{.vectors = 3001}};

std::unique_ptr<Operation> operation(const KernelType& kernel) {
  auto made = operation_of(kernel, kernel->default_arguments());
  REQUIRE(made.ok());
  return *std::move(made);
}

Bytes input_of(const Operation& operation, u64 seed) {
  Bytes input(operation.arguments()[0].bytes);
  REQUIRE(operation.make_input(0, seed, 0, absl::MakeSpan(input)).ok());
  return input;
}

// Reads from `input`, the only one that the operations here have.
auto reader(const Bytes& input) {
  return [&input](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
    REQUIRE(argument == 0);
    REQUIRE(offset + piece.size() <= input.size());
    std::copy_n(input.begin() + static_cast<std::ptrdiff_t>(offset), piece.size(), piece.begin());
    return absl::OkStatus();
  };
}

// The argument put together from pieces of these numbers of units in turn.
template <class MakePiece>
Bytes in_pieces(const Operation& operation, std::size_t argument, MakePiece make_piece) {
  Bytes all(operation.arguments()[argument].bytes);
  const u64 counts[] = {1, 1023, 1, 7, 2000};
  std::size_t turn = 0;
  for (u64 offset = 0; offset < all.size();) {
    const u64 bytes = std::min<u64>(counts[turn++ % 5] * operation.unit(argument), all.size() - offset);
    REQUIRE(make_piece(offset, absl::MakeSpan(all).subspan(offset, bytes)).ok());
    offset += bytes;
  }
  return all;
}

TEST_CASE("pieces of an operation's input and output make up the whole", "[reference]") {
  for (const KernelType& kernel : kKernels) {
    CAPTURE(kernel->text());
    const auto op = operation(kernel);
    const Bytes input = input_of(*op, 5);
    CHECK(in_pieces(*op, 0, [&](u64 offset, absl::Span<std::byte> piece) {
            return op->make_input(0, 5, offset, piece);
          }) == input);
    CHECK(input != input_of(*op, 6));
    // No stretch is like another.
    const std::size_t half = input.size() / 2;
    CHECK_FALSE(std::equal(input.begin(), input.begin() + static_cast<std::ptrdiff_t>(half),
                           input.begin() + static_cast<std::ptrdiff_t>(half)));

    Bytes whole(op->arguments()[1].bytes);
    REQUIRE(op->expect(1, 0, reader(input), absl::MakeSpan(whole)).ok());
    CHECK(in_pieces(*op, 1, [&](u64 offset, absl::Span<std::byte> piece) {
            return op->expect(1, offset, reader(input), piece);
          }) == whole);
    CHECK(op->check(1, 0, reader(input), whole)->equal());
  }
}

TEST_CASE("an operation finds the one value that is wrong", "[reference]") {
  for (const KernelType& kernel : kKernels) {
    CAPTURE(kernel->text());
    const auto op = operation(kernel);
    const Bytes input = input_of(*op, 7);
    const u64 offset = 3 * op->unit(1);
    Bytes piece(5 * op->unit(1));
    REQUIRE(op->expect(1, offset, reader(input), absl::MakeSpan(piece)).ok());
    const std::size_t wrong = 2 * op->unit(1) + 4;
    piece[wrong] ^= std::byte{1};
    const auto found = op->check(1, offset, reader(input), piece);
    REQUIRE(found.ok());
    const std::size_t size = size_of(found->type);
    CHECK(found->values == piece.size() / size);
    CHECK(found->mismatches == 1);
    CHECK(found->first.front().index == (offset + wrong) / size);
  }
}

TEST_CASE("copies' words are their places, mixed with the seed", "[reference]") {
  const auto op = operation(Copy{.vectors = 3});
  const Bytes input = input_of(*op, 0);
  const std::byte first[] = {std::byte{0x15}, std::byte{0x7c}, std::byte{0x4a}, std::byte{0x7f},
                             std::byte{0xb9}, std::byte{0x79}, std::byte{0x37}, std::byte{0x9e}};
  CHECK(std::equal(std::begin(first), std::end(first), input.begin()));
}

TEST_CASE("an operation refuses what is no piece", "[reference]") {
  const auto op = operation(Dequant{Format::kQ4_0, 32, 3, ElementType::kF16});
  const auto refusal = [&](std::size_t argument, u64 offset, std::size_t bytes) {
    Bytes piece(bytes);
    return std::string(op->make_input(argument, 1, offset, absl::MakeSpan(piece)).message());
  };
  CHECK(refusal(0, 18, 36).empty());
  CHECK(refusal(0, 0, 72) == "weights has 54 bytes; a piece of 72 at 0 is not in it");
  CHECK(refusal(0, 72, 0) == "weights has 54 bytes; a piece of 0 at 72 is not in it");
  CHECK(refusal(0, 17, 18) ==
        "a piece of 18 bytes at 17 of weights does not begin and end at a multiple of 18");
  CHECK(refusal(0, 18, 19) ==
        "a piece of 19 bytes at 18 of weights does not begin and end at a multiple of 18");
  CHECK(refusal(1, 0, 64) == "out is no input");
  Bytes piece(18);
  const auto read = [](std::size_t, u64, absl::Span<std::byte>) { return absl::DataLossError("torn"); };
  CHECK(op->expect(0, 0, read, absl::MakeSpan(piece)).message() == "weights is no output");
  piece.resize(64);
  CHECK(op->check(1, 0, read, piece).status().message() == "torn");
}

struct Unknown {  // a kernel of somebody else's
  u32 n = 1;
  static constexpr auto fields() { return std::tuple(field("n", &Unknown::n, "values")); }
  struct Args {
    static constexpr auto fields() { return std::tuple<>(); }
  };
  std::string name() const { return "unknown"; }
  LaunchShape launch_shape(const Args&) const { return {}; }
  void build(KernelBuilder&) const {}
};

TEST_CASE("every kernel of the library has a reference, and others have none", "[reference]") {
  for (const KernelFamily& family : kernel_families()) {
    CAPTURE(family.name);
    CHECK(operation_of(family.defaults, family.defaults->default_arguments()).ok());
  }
  const auto unknown = operation_of(Unknown{}, {});
  CHECK(unknown.status().code() == absl::StatusCode::kUnimplemented);
  CHECK(unknown.status().message().find("unknown") != std::string::npos);
}

}  // namespace
}  // namespace ptxgen::reference

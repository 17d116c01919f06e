// What the library's kernels compute, by the reference: input to run one on, and what must come out. Nothing
// is held as a whole: input is made and output is checked in pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ptxgen/kernel_type.h"
#include "src/reference/compare.h"

namespace ptxgen::reference {

// Fills `piece` with the bytes of the input `argument` that begin at `offset`.
using ReadInput =
    absl::FunctionRef<absl::Status(std::size_t argument, u64 offset, absl::Span<std::byte> piece)>;

// One launch of a kernel. Arguments are counted as in its Args::fields(). A piece is a range of an
// argument's bytes that begins and ends at multiples of unit(argument); any other is an InvalidArgument.
class Operation {
 public:
  virtual ~Operation() = default;

  const ArgInfos& arguments() const { return arguments_; }
  bool reads(std::size_t argument) const;
  bool writes(std::size_t argument) const;

  // The bytes that belong together: a block of weights, the values that come of it.
  virtual u64 unit(std::size_t argument) const = 0;

  // Valid random input. What a seed gives does not depend on how the argument is cut into pieces.
  absl::Status make_input(std::size_t argument, u64 seed, u64 offset, absl::Span<std::byte> piece) const;

  // Makes weights that make_input() has made more like a model's (generate.h, level_scales()): for timing.
  virtual void level(std::size_t /*argument*/, absl::Span<std::byte> /*all*/) const {}

  // Whether the output is compared within bounds, and not bit for bit.
  virtual bool is_bounded(std::size_t /*argument*/) const { return false; }

  // The output that the inputs give; of one with bounds, their middle.
  absl::Status expect(std::size_t argument, u64 offset, ReadInput read, absl::Span<std::byte> piece) const;

  // Compares a kernel's output with it. Indices count from the argument's beginning.
  absl::StatusOr<Comparison> check(std::size_t argument, u64 offset, ReadInput read,
                                   absl::Span<const std::byte> actual) const;

 protected:
  explicit Operation(ArgInfos arguments) : arguments_(std::move(arguments)) {}

 private:
  // The same for arguments and pieces that were found legal.
  virtual void make(std::size_t argument, u64 seed, u64 offset, absl::Span<std::byte> piece) const = 0;
  virtual absl::Status compute(std::size_t argument, u64 offset, ReadInput read,
                               absl::Span<std::byte> piece) const;
  // The same for an output with bounds: `count` f32 values from `offset` on.
  virtual absl::StatusOr<std::vector<Bounded>> compute_bounded(std::size_t argument, u64 offset,
                                                               ReadInput read, std::size_t count) const;
  // What an output is compared as; nothing for bytes.
  virtual std::optional<FloatType> type(std::size_t argument) const = 0;
  // Gives bytes that mean the same the same form, before a comparison.
  virtual void canonicalize(std::size_t /*argument*/, absl::Span<std::byte> /*piece*/) const {}

  absl::Status check_piece(std::size_t argument, u64 offset, u64 bytes) const;
  absl::Status check_output(std::size_t argument, u64 offset, u64 bytes) const;

  ArgInfos arguments_;
};

// What `kernel` computes when launched with the scalars in `values`; buffers' addresses do not matter. A
// kernel that has no reference is Unimplemented.
absl::StatusOr<std::unique_ptr<Operation>> operation_of(const KernelType& kernel, ArgValues values);

}  // namespace ptxgen::reference

#include "tools/ptxgen/compare.h"

#include <algorithm>
#include <memory>

#include "tools/ptxgen/files.h"
#include "tools/ptxgen/launch.h"

namespace ptxgen::tool {
namespace {

using reference::Comparison;
using reference::Operation;

// Calls visit(piece, offset) for pieces of whole units that make up the argument, in one buffer.
template <class Visit>
absl::Status for_each_piece(const Operation& operation, std::size_t argument, Visit visit) {
  const u64 total = operation.arguments()[argument].bytes, unit = operation.unit(argument);
  std::vector<std::byte> piece(std::min(total, std::max<u64>(kPieceBytes / unit, 1) * unit));
  for (u64 offset = 0; offset < total; offset += piece.size()) {
    const u64 bytes = std::min<u64>(piece.size(), total - offset);
    if (absl::Status s = visit(absl::MakeSpan(piece).first(bytes), offset); !s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status upload(const Operation& operation, std::size_t argument, reference::ReadInput read,
                    Buffer& buffer) {
  return for_each_piece(operation, argument, [&](absl::Span<std::byte> piece, u64 offset) {
    if (absl::Status s = read(argument, offset, piece); !s.ok()) return s;
    return buffer.copy_from_host(piece.data(), piece.size(), offset);
  });
}

}  // namespace

absl::Status compare_output(const Operation& operation, std::size_t argument, reference::ReadInput read,
                            const Buffer& buffer, Verified& verified) {
  Comparison all;
  const absl::Status done =
      for_each_piece(operation, argument, [&](absl::Span<std::byte> piece, u64 offset) -> absl::Status {
        if (absl::Status s = buffer.copy_to_host(piece.data(), piece.size(), offset); !s.ok()) return s;
        const absl::StatusOr<Comparison> found = operation.check(argument, offset, read, piece);
        if (found.ok()) all.append(*found);
        return found.status();
      });
  if (!done.ok()) return done;
  verified.values += all.values;
  verified.mismatches += all.mismatches;
  verified.bounded |= all.bounded;
  verified.worst = std::max(verified.worst, all.worst);
  if (!all.equal() && verified.difference.empty()) {
    all.first.resize(1);
    verified.difference = str_cat(operation.arguments()[argument].name, ": ", all.to_string());
  }
  return absl::OkStatus();
}

namespace {

absl::StatusOr<Verified> verify_operation(KernelCache& cache, const KernelType& kernel,
                                          const std::vector<u64>& values, const Operation& operation,
                                          reference::ReadInput read) {
  absl::StatusOr<Launch> launch = Launch::prepare(cache, kernel, values);
  if (!launch.ok()) return launch.status();
  const std::size_t arguments = operation.arguments().size();
  for (std::size_t i = 0; i < arguments; ++i) {
    if (!operation.reads(i)) continue;
    if (absl::Status s = upload(operation, i, read, launch->buffer(i)); !s.ok()) return s;
  }
  const absl::StatusOr<float> ms = launch->run();
  if (!ms.ok()) return ms.status();

  Verified verified{.ms = *ms};
  for (std::size_t i = 0; i < arguments; ++i) {
    if (!operation.writes(i)) continue;
    if (absl::Status s = compare_output(operation, i, read, launch->buffer(i), verified); !s.ok()) return s;
  }
  return verified;
}

}  // namespace

absl::StatusOr<Verified> verify_with(KernelCache& cache, const KernelType& kernel,
                                     const std::vector<u64>& values, reference::ReadInput read) {
  const absl::StatusOr<std::unique_ptr<Operation>> operation = reference::operation_of(kernel, values);
  if (!operation.ok()) return operation.status();
  return verify_operation(cache, kernel, values, **operation, read);
}

absl::StatusOr<Verified> verify_generated(KernelCache& cache, const KernelType& kernel,
                                          const std::vector<u64>& values, u64 seed) {
  const absl::StatusOr<std::unique_ptr<Operation>> operation = reference::operation_of(kernel, values);
  if (!operation.ok()) return operation.status();
  return verify_operation(cache, kernel, values, **operation,
                          [&](std::size_t argument, u64 offset, absl::Span<std::byte> piece) {
                            return (*operation)->make_input(argument, seed, offset, piece);
                          });
}

}  // namespace ptxgen::tool

// Files as the tool reads and writes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace ptxgen::tool {

inline constexpr std::size_t kPieceBytes = 4 << 20;

// Gives `take(piece, offset)` exactly `bytes` bytes of the file or pipe at `path`, piece by piece. A file
// that has another size is refused, with both sizes; of a pipe, pieces may have been taken by then.
using TakePiece = absl::FunctionRef<absl::Status(absl::Span<const std::byte> piece, std::uint64_t offset)>;
absl::Status read_exactly(const std::string& path, std::uint64_t bytes, TakePiece take);

// The file or pipe at `path`, which may have `most` bytes at most.
absl::StatusOr<std::string> read_text(const std::string& path, std::uint64_t most);

// A file that appears whole or not at all: it is written beside `path` and renamed by commit(). What exists
// and is no regular file (/dev/stdout, a pipe) is written directly.
class OutputFile {
 public:
  static absl::StatusOr<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  absl::Status write(absl::Span<const std::byte> bytes);
  absl::Status commit();

 private:
  OutputFile() = default;

  std::string path_;       // as the user wrote it
  std::string target_;     // where the rename leads
  std::string temporary_;  // empty: nothing to rename
  int descriptor_ = -1;
};

absl::Status write_file(const std::string& path, std::string_view text);

// Writes to stdout. That nobody reads it any more is no error.
absl::Status write_stdout(std::string_view text);

// One line on stderr: "ptxgen: message".
void say(std::string_view message);

}  // namespace ptxgen::tool

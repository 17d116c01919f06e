// The folder in which a process keeps what it found out for the next one: cubins, and what tuning measured.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "ptxgen/export.h"

namespace ptxgen {

struct CacheDirectoryOptions {
  // Empty: PTXGEN_CACHE_DIR, else $XDG_CACHE_HOME/ptxgen, else $HOME/.cache/ptxgen. As the XDG base directory
  // specification has it, an XDG_CACHE_HOME that is not absolute counts as unset.
  std::string path = {};
  // Use the folder although it is a symbolic link, belongs to another user or can be written by others: who
  // can write there decides what code runs here. Nothing: PTXGEN_CACHE_SHARED.
  std::optional<bool> shared = {};
};

// The absolute path of the cache directory, or of its subfolder `room` ("cubins": one component of
// [a-z0-9_-]; empty: the directory itself), made with mode 0700 (a shared one with what the umask leaves)
// where it is missing. Otherwise one reason why nothing is to be kept there and how to change that: there is
// no home, it cannot be made, or it is not private (kPermissionDenied). Nothing is kept between calls. The
// folder may still be read-only or full; its user must be content with that.
PTXGEN_API absl::StatusOr<std::string> cache_directory(std::string_view room = {},
                                                       const CacheDirectoryOptions& options = {});

}  // namespace ptxgen

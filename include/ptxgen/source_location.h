// Where in the host program a kernel's instruction was written: std::source_location where the compiler has
// it.
#pragma once

#include <cstdint>
#include <version>

#ifdef __cpp_lib_source_location
#include <source_location>
namespace ptxgen {
using SourceLocation = std::source_location;
}
#else
namespace ptxgen {
// The part of std::source_location that ptxgen uses, for clang before 16.
struct SourceLocation {
  static constexpr SourceLocation current(const char* file = __builtin_FILE(),
                                          std::uint32_t line = __builtin_LINE(),
                                          const char* function = __builtin_FUNCTION()) {
    SourceLocation where;
    where.file_ = file;
    where.function_ = function;
    where.line_ = line;
    return where;
  }
  constexpr const char* file_name() const { return file_; }
  constexpr const char* function_name() const { return function_; }
  constexpr std::uint32_t line() const { return line_; }

 private:
  const char* file_ = "";
  const char* function_ = "";
  std::uint32_t line_ = 0;
};
}  // namespace ptxgen
#endif

// Code that must not be compiled as one unit of several.
#pragma once

#include <string_view>

namespace ptxgen::internal {

// cuLink* compiles PTX as relocatable code, and ptxas ignores setmaxnreg there (its message C7504): registers
// are spilled and wgmma instructions serialised. A load compiles the text as a whole.
inline bool needs_whole_program(std::string_view ptx) {
  return ptx.find("setmaxnreg.") != std::string_view::npos;
}

}  // namespace ptxgen::internal

// SHA-256 (FIPS 180-4): names and verifies what is kept on disk by its content.
#pragma once

#include <string>
#include <string_view>

namespace ptxgen {

// The digest of `data` in 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view data);

}  // namespace ptxgen

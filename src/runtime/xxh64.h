// XXH64: a fast hash of 64 bits without cryptographic strength, for what an accident may do to a file.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptxgen::internal {

std::uint64_t xxh64(std::string_view data, std::uint64_t seed = 0);

}  // namespace ptxgen::internal

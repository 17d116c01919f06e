// Where the suite's files are, in the checkout.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ptxgen::testing {

// The path of tests/data/`name`.
std::string data_path(const std::string& name);

// The bytes of tests/data/`name`. A file that is missing fails the test.
std::vector<std::byte> read_data(const std::string& name);

// The path of tests/golden.
std::string golden_folder();

}  // namespace ptxgen::testing

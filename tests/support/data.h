// The files of tests/data.
#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptxgen::testing {

inline std::string data_path(const std::string& name) {
  return std::string(PTXGEN_TEST_DATA) + "/" + name;
}

// The bytes of tests/data/`name`. A file that is missing fails the test.
inline std::vector<std::byte> read_data(const std::string& name) {
  std::ifstream file(data_path(name), std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + data_path(name));
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  const auto* first = reinterpret_cast<const std::byte*>(bytes.data());
  return {first, first + bytes.size()};
}

}  // namespace ptxgen::testing

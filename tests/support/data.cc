#include "tests/support/data.h"

#include <optional>
#include <stdexcept>

#include "tests/support/files.h"

namespace ptxgen::testing {

std::string data_path(const std::string& name) {
  return std::string(PTXGEN_TEST_DATA) + "/" + name;
}

std::vector<std::byte> read_data(const std::string& name) {
  const std::optional<std::string> content = read_file(data_path(name));
  if (!content.has_value()) throw std::runtime_error("cannot read " + data_path(name));
  const auto* first = reinterpret_cast<const std::byte*>(content->data());
  return {first, first + content->size()};
}

std::string golden_folder() {
  return PTXGEN_TEST_GOLDEN;
}

}  // namespace ptxgen::testing

// --operation, and the products that it and its lists name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ptxgen/list_options.h"
#include "tools/ptxgen/product.h"

namespace ptxgen::tool {

class ProductOptions {
 public:
  explicit ProductOptions(CLI::App& app);

  // Every combination of shapes, numbers of rows, inputs and paths, the last varying fastest. `neighbours`:
  // with m + 1 behind each m.
  absl::StatusOr<std::vector<Product>> products(bool neighbours) const;

  // Whether all paths are asked for, whichever there are here.
  bool every_path() const { return paths_ == kAllPaths; }

 private:
  std::string operation_, paths_ = "auto";
  ListOptions lists_;
};

}  // namespace ptxgen::tool

#include "tools/ptxgen/product_options.h"

#include <algorithm>

namespace ptxgen::tool {

ProductOptions::ProductOptions(CLI::App& app)
    : lists_(app, "the operation", field_infos(ProductShape{}),
             str_cat("numbers and ranges, 1..4096 for powers of two; default ", GemmShape{}.m, ", of gemv ",
                     GemvShape{}.m)) {
  app.add_option("--operation", operation_, "a product of the executor: gemm or gemv")->type_name("NAME");
  app.add_option("--path", paths_,
                 "who computes it: auto, which is the policy's choice, variants with or without constants, "
                 "'auto,mma,wgmma tile_m=64', or all; default auto")
      ->type_name("LIST");
}

absl::StatusOr<std::vector<Product>> ProductOptions::products(bool neighbours) const {
  ProductKind kind{};
  if (absl::Status s = detail::parse_field("--operation", operation_, {}, kind); !s.ok()) return s;
  const absl::StatusOr<std::vector<ProductPath>> paths = parse_paths(kind, paths_);
  if (!paths.ok()) return paths.status();
  const ProductShape defaults = {.m = kind == ProductKind::kGemv ? GemvShape{}.m : GemmShape{}.m};
  const absl::StatusOr<std::vector<ProductShape>> given = lists_.shapes(defaults);
  if (!given.ok()) return given.status();
  std::vector<ProductShape> all;
  const auto add = [&](const ProductShape& shape) {
    const auto same = [&](const ProductShape& other) { return equal_fields(shape, other); };
    if (std::none_of(all.begin(), all.end(), same)) all.push_back(shape);
  };
  for (ProductShape shape : *given) {
    if (absl::Status s = check_fields(shape); !s.ok()) return s;
    add(shape);
    ++shape.m;
    if (neighbours) add(shape);
  }
  std::vector<Product> products;
  for (const ProductShape& shape : all) {
    for (const ProductPath& path : *paths) products.push_back({kind, shape, path});
  }
  return products;
}

}  // namespace ptxgen::tool

// What a benchmark of the executor's products found, as a table, as JSON and as a plot.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ptxgen/executor.h"
#include "tools/ptxgen/bench_report.h"
#include "tools/ptxgen/product_timing.h"

namespace ptxgen::tool {

struct ProductRow {
  Product product = {};
  std::string refused = {};  // why there is no measurement; else empty
  Activations a_type = {};   // that the call was given
  GemmReport ran = {};
  u32 calls = 0;  // in a graph, each with weights of its own
  Timing time = {};
  std::optional<double> prepared = {};  // microseconds without the preparation of the activations
  std::vector<Phase> phases = {};
  // The time over that of kernels which only read the weights, launched dependently and plainly, and over
  // that of cuBLAS with f16 weights and activations.
  std::optional<double> over_read_dependent = {}, over_read = {}, over_cublas = {};

  u64 weight_bytes() const;
  u64 operations() const;  // two for each pair that is multiplied and added
  double gigabytes_per_second() const { return static_cast<double>(weight_bytes()) / time.median * 1e-3; }
  double teraflops() const { return static_cast<double>(operations()) / time.median * 1e-6; }
  double sum_of_phases() const;
};

// Two numbers of rows next to each other, of which the larger takes the policy's choice much longer.
struct Cliff {
  const ProductRow *before, *behind;
  double rise() const { return behind->time.median / before->time.median - 1; }
};
inline constexpr double kSteepest = 0.2;

struct ProductReport {
  std::string device;
  std::vector<ProductRow> rows = {};
  std::vector<BenchRow> floors = {};    // for every number of bytes
  std::vector<ProductRow> cublas = {};  // a row for each shape that it was measured for
  std::string no_cublas = {};           // why not for the others

  // Of path auto, m and m + 1 where both are among the rows, and by how much time may rise between them.
  std::vector<Cliff> cliffs() const;
  // Whether there is a pair to look at.
  bool has_neighbours() const;

  std::string text() const;
  Json json() const;
  // TFLOP/s over m, a line for each path; where there is one m only, a bar of microseconds for each.
  std::string svg() const;
};

}  // namespace ptxgen::tool

// What a benchmark found, as a table, as JSON and as a plot.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ptxgen/kernels.h"
#include "tools/ptxgen/measure.h"
#include "tools/ptxgen/plot.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {

// What the compiler and the device made of a kernel.
struct Footprint {
  u32 registers = 0;
  u64 static_shared_bytes = 0, dynamic_shared_bytes = 0;
  u32 ctas_per_sm = 0;
  u64 local_bytes = 0;  // of a thread: spills and local arrays
};

struct BenchRow {
  std::string kernel;          // name and constants
  FieldValues constants = {};  // those of the combination, to tell rows apart
  std::string refused = {};    // why there is no measurement; else empty
  bool dependent = false;      // with programmatic dependent launch (PDL)
  u32 calls = 0;               // in a graph, each on buffers of its own
  u64 bytes = 0;               // that a call reads from and writes to these
  u64 operations = 0;          // of a matrix product: two for each pair that is multiplied and added
  Timing time = {};
  Footprint footprint = {};
  KernelOrigin origin = KernelOrigin::kCompiled;
  // The time over that of kernels which only read as many bytes, launched plainly and dependently, and of a
  // copy of as many.
  std::optional<double> over_read = {}, over_read_dependent = {}, over_copy = {};

  double gigabytes_per_second() const { return static_cast<double>(bytes) / time.median * 1e-3; }
  std::optional<double> teraflops() const {
    if (operations == 0) return {};
    return static_cast<double>(operations) / time.median * 1e-6;
  }
};

// A line for each, those of `more` behind.
Table table_of(const std::vector<BenchRow>& rows, const std::vector<BenchRow>& more = {});

// What tells `values` from `all`, "stream, k=4096": those that differ between them, of enumerations without
// their names.
std::string label_of(const FieldValues& values, const std::vector<FieldValues>& all,
                     const std::vector<std::string_view>& left_out);

struct BenchReport {
  std::string device;
  std::vector<BenchRow> rows;
  std::vector<BenchRow> floors;  // of every number of bytes

  std::string text() const;
  Json json() const;
  // GB/s over the bytes of a call, of matrix products TFLOP/s over their operations, a line for each choice
  // of constants; where all calls have as many, a bar of microseconds for each.
  std::string svg() const;
};

}  // namespace ptxgen::tool

// How long products of the executor take, and of what that is made up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "tools/ptxgen/bench_options.h"
#include "tools/ptxgen/product.h"

namespace ptxgen::tool {

struct TimedProduct {
  GemmReport ran;
  u32 calls = 0;  // in a graph, each with weights of its own
  Timing time = {};
  std::optional<double> prepared = {};  // microseconds without the preparation of the activations
};

// Graphs of calls on all weights of the product's data, fewer where they take long: with the preparation of
// the activations in each call, and without. A product that takes another path with some of the weights is
// refused. All graphs of an executor are to be recorded from one stream, which keeps memory for them.
absl::StatusOr<TimedProduct> time_product(const Stream& stream, ProductRun& run,
                                          const TimingOptions& options);

// A part of a call, timed on its own.
struct Phase {
  std::string name;  // the descriptor of its launch
  double microseconds = 0;
};

// Of a call that ran so: the preparation of its activations, and each kernel with buffers of its own, as
// `bench --kernel` times it. `plain`: without programmatic dependent launch.
absl::StatusOr<std::vector<Phase>> time_phases(const Stream& stream, KernelCache& cache,
                                               const Product& product, ProductRun& run,
                                               const TimedProduct& timed, const TimingOptions& options,
                                               bool plain);

}  // namespace ptxgen::tool

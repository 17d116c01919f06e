// How long products of the executor take, and of what that is made up.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "tools/ptxgen/bench_options.h"
#include "tools/ptxgen/library_bench.h"
#include "tools/ptxgen/product.h"

namespace ptxgen::tool {

struct TimedProduct {
  GemmReport ran;
  u32 calls = 0;  // in a graph, each with weights of its own
  Timing time = {};
  std::optional<double> prepared = {};  // microseconds without the preparation of the activations
  std::optional<Timing> beside = {};    // of TimingWishes::beside
};

// Calls that are timed beside a product's.
struct Beside {
  u32 calls;
  absl::FunctionRef<absl::Status(u32 call)> record;
};

struct TimingWishes {
  bool preparation = true;  // measured too, where activations are prepared
  u32 longer = 1;           // times as many replays
  const Beside* beside = nullptr;
};

// Graphs of calls on all weights of the product's data, fewer where they take long: with the preparation of
// the activations in each call, and without; and one of what is timed beside. They take turns. A product that
// takes another path with some of the weights is refused. All graphs of an executor are to be recorded from
// one stream, which keeps memory for them.
absl::StatusOr<TimedProduct> time_product(const Stream& stream, ProductRun& run, const TimingOptions& options,
                                          const TimingWishes& wishes = {});

// A part of a call, timed on its own.
struct Phase {
  std::string name;         // the descriptor of its launches
  u32 launches = 1;         // of the same
  double microseconds = 0;  // of all together
};

// Of a call that ran so: the preparation of its activations, and each kernel with buffers of its own, as
// `bench --kernel` times it; those of cuBLASLt likewise. `plain`: without programmatic dependent launch.
absl::StatusOr<std::vector<Phase>> time_phases(const Stream& stream, KernelCache& cache,
                                               LibraryBench& library, const Product& product, ProductRun& run,
                                               const TimedProduct& timed, const TimingOptions& options,
                                               bool plain);

}  // namespace ptxgen::tool

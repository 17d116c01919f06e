// Products by cuBLASLt alone, timed as kernels are: what the executor's are compared with, and parts of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "src/runtime/lt_multiplier.h"
#include "tools/ptxgen/bench_options.h"

namespace ptxgen::tool {

struct LibraryTime {
  Timing time;
  u32 calls = 0;  // in a graph, each with weights of its own
};

// A product with random operands, which has run once.
struct LibraryCall {
  internal::LtProduct product;
  Buffer a, c, scale;
  u32 calls = 0;     // as above
  double alone = 0;  // microseconds of one
};

class LibraryBench {
 public:
  LibraryBench(const Device& device, const Stream& stream, const TimingOptions& options)
      : device_(device), stream_(stream), options_(options) {}

  // What GemmReport::kernels calls a launch: "cublaslt m=512 n=4096 k=4096 type=f16". Each is measured once.
  static bool is_launch(std::string_view text) { return text.starts_with("cublaslt "); }
  absl::StatusOr<LibraryTime> time(const std::string& launch);
  // f16 weights and activations, f32 results. It stays until the next is prepared or timed.
  absl::StatusOr<LibraryCall> prepare_f16(u32 m, u32 n, u32 k);
  // With the weights of `call`, below call.calls.
  absl::Status multiply(const LibraryCall& prepared, u32 call) const;

 private:
  absl::Status open();
  absl::Status prepare_weights(const internal::LtProduct& product);
  absl::StatusOr<LibraryCall> prepare(internal::LtProduct product);

  const Device device_;
  const Stream& stream_;
  const TimingOptions& options_;
  std::shared_ptr<internal::LtMultiplier> multiplier_;
  Buffer workspace_;
  std::string weights_of_;       // which type, n and k they have
  std::vector<Buffer> weights_;  // one for each call
  std::map<std::string, absl::StatusOr<LibraryTime>> measured_;
};

}  // namespace ptxgen::tool

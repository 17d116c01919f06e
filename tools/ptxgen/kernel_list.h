// Many kernels at once: those of a model, or of a list.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/device.h"
#include "tools/ptxgen/options.h"

namespace ptxgen::tool {

// The kernel with this text: "q4k_dequant k=4096 n=11008 out_type=f16", as `ptxgen dump --emit descriptor`
// and `ptxgen cache ls` print it. Constants that are left out have their defaults.
absl::StatusOr<KernelType> parse_kernel(std::string_view text);

struct KernelList {
  std::vector<KernelType> kernels;  // each once
  std::vector<std::string> notes;   // what was left out, and why
};

// --gguf, --list and --constant
class KernelListOptions {
 public:
  explicit KernelListOptions(CLI::App& app);

  bool given() const { return gguf_option_->count() > 0 || list_option_->count() > 0; }

  // --gguf: for each quantised shape in the model what an Executor on such a device, without records of
  // ptxgen tune, runs for products with it, and every other kernel that takes the format. --list: one a line;
  // what follows a # does not count. Neither or both is refused.
  absl::StatusOr<KernelList> kernels(const DeviceProperties& device) const;

 private:
  std::string gguf_, list_;
  CLI::Option *gguf_option_, *list_option_;
  NamedValues constants_;
};

}  // namespace ptxgen::tool

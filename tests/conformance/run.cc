#include "tests/conformance/run.h"

#include <algorithm>
#include <array>

#include "ptxgen/strings.h"
#include "tests/conformance/patterns.h"

namespace ptxgen::testing {
namespace {

absl::StatusOr<CaseRun> run_case(const Device& device, const Module& module, const ConformanceCase& c) {
  CaseRun run{conformance_input(c), std::vector<std::byte>(std::size_t{c.threads} * c.output_bytes)};
  absl::StatusOr<Function> function = module.function(c.entry_name);
  if (!function.ok()) return function.status();
  absl::StatusOr<Buffer> in = device.allocate(std::max<std::size_t>(run.input.size(), 16), "in");
  if (!in.ok()) return in.status();
  absl::StatusOr<Buffer> out = device.allocate(run.output.size(), "out");
  if (!out.ok()) return out.status();
  absl::Status status = in->copy_from_host(run.input.data(), run.input.size());
  if (status.ok()) status = out->fill(0);
  const std::array<u64, 2> addresses = {in->address(), out->address()};
  const std::array<KernelArg, 2> args = {KernelArg::of(addresses[0]), KernelArg::of(addresses[1])};
  const LaunchShape shape{.grid = {c.threads / ConformanceCase::kCta}, .block = {ConformanceCase::kCta}};
  if (status.ok()) status = function->launch(device.default_stream(), shape, args);
  if (status.ok()) status = device.synchronize();
  if (status.ok()) status = out->copy_to_host(run.output.data(), run.output.size());
  if (!status.ok())
    return absl::Status(status.code(),
                        absl::string_view(str_cat(c.name, ": ", status.message(), "\n", c.entry)));
  return run;
}

}  // namespace

absl::StatusOr<std::vector<CaseRun>> run_cases(const Device& device,
                                               absl::Span<const ConformanceCase> cases) {
  absl::StatusOr<Module> module = device.load_module(conformance_module(cases));
  if (!module.ok()) return module.status();
  std::vector<CaseRun> runs;
  for (const ConformanceCase& c : cases) {
    absl::StatusOr<CaseRun> run = run_case(device, *module, c);
    if (!run.ok()) return run.status();
    runs.push_back(*std::move(run));
  }
  return runs;
}

std::vector<absl::Span<const ConformanceCase>> in_modules(const std::vector<ConformanceCase>& cases,
                                                          std::size_t count) {
  std::vector<absl::Span<const ConformanceCase>> spans;
  for (std::size_t i = 0; i < cases.size(); i += count) {
    spans.push_back(absl::MakeConstSpan(cases).subspan(i, count));
  }
  return spans;
}

}  // namespace ptxgen::testing

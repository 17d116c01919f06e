#include "tools/ptxgen/product_timing.h"

#include <algorithm>

#include "src/reference/operation.h"
#include "tools/ptxgen/kernel_list.h"

namespace ptxgen::tool {
namespace {

absl::Status add_call(const Stream& stream, ProductRun& run, bool prepare, u32 call) {
  if (prepare) {
    if (absl::Status s = run.prepare(stream); !s.ok()) return s;
  }
  return run.multiply(stream, call).status();
}

// Runs the call with the weights of each: what an executor compiles and keeps is made at the first use, and
// never while a stream is recorded.
absl::StatusOr<GemmReport> warm_up(const Stream& stream, ProductRun& run, u32 calls) {
  if (absl::Status s = run.prepare(stream); !s.ok()) return s;
  absl::StatusOr<GemmReport> first = run.multiply(stream, 0);
  if (!first.ok()) return first;
  for (u32 call = 1; call < calls; ++call) {
    const absl::StatusOr<GemmReport> other = run.multiply(stream, call);
    if (!other.ok()) return other.status();
    if (other->path == first->path) continue;
    return absl::FailedPreconditionError(
        str_cat("of ", calls, " calls, each with its own weights, the first took path ", first->path,
                " and number ", call + 1, " ", other->path, ": ", other->reason, "; give fewer --calls"));
  }
  if (absl::Status s = stream.synchronize(); !s.ok()) return s;
  return first;
}

// The rows of a that each kernel of the call took, as the executor deals them.
u32 rows_of(const KernelType& kernel, u32 left) {
  if (kernel.get_if<Gemv>()) return 1;
  if (const auto* batched = kernel.get_if<BatchedGemv>()) return std::min(left, batched->max_m);
  return left;
}

// The kernel's scalars for so many rows of activations.
std::vector<u64> arguments_for(const Descriptor& kernel, u32 rows, u32 k) {
  std::vector<u64> values = kernel.default_arguments();
  const ArgInfos arguments = kernel.arguments(values);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].direction != Direction::kScalar) continue;
    if (arguments[i].name == "m") values[i] = rows;
    if (arguments[i].name == "count") values[i] = u64{rows} * k;
  }
  return values;
}

absl::StatusOr<double> time_kernel(KernelCache& cache, const KernelType& kernel,
                                   const std::vector<u64>& values, const TimingOptions& options, bool plain) {
  const auto operation = reference::operation_of(kernel, values);
  if (!operation.ok()) return operation.status();
  const absl::StatusOr<CompiledKernel> compiled = cache.get(kernel);
  if (!compiled.ok()) return compiled.status();
  const absl::StatusOr<Workload> workload =
      Workload::prepare(cache.device(), **operation, values, options.rotation());
  if (!workload.ok()) return workload.status();
  const bool dependent =
      !plain && compiled->generated().waits_for_predecessor && cache.device().target().supports(kHopper);
  const absl::StatusOr<Timing> time =
      time_calls(*compiled, cache.device(), *workload, options.replays(), dependent);
  if (!time.ok()) return time.status();
  return time->median;
}

absl::StatusOr<double> time_launch(LibraryBench& library, const std::string& text) {
  const absl::StatusOr<LibraryTime> time = library.time(text);
  if (!time.ok()) return time.status();
  return time->time.median;
}

}  // namespace

absl::StatusOr<TimedProduct> time_product(const Stream& stream, ProductRun& run, const TimingOptions& options,
                                          const TimingWishes& wishes) {
  absl::StatusOr<GemmReport> ran = warm_up(stream, run, 1);
  if (!ran.ok()) return ran.status();
  const absl::StatusOr<Timing> alone =
      time_calls(stream, 1, 1, [&](u32 call) { return add_call(stream, run, true, call); });
  if (!alone.ok()) return alone.status();
  const u32 calls = options.calls_for(run.calls(), alone->median);
  const u32 replays = options.replays_for(calls, alone->median) * wishes.longer;
  ran = warm_up(stream, run, calls);
  if (!ran.ok()) return ran.status();
  TimedProduct timed{.ran = *std::move(ran), .calls = calls};
  const bool both = run.prepares() && wishes.preparation;
  std::vector<u32> graphs = {calls};
  if (both) graphs.push_back(calls);
  const std::size_t beside = graphs.size();
  if (wishes.beside) graphs.push_back(wishes.beside->calls);
  const absl::StatusOr<std::vector<Timing>> times =
      time_in_turns(stream, graphs, replays, [&](std::size_t graph, u32 call) {
        if (graph == beside) return wishes.beside->record(call);
        return add_call(stream, run, wishes.preparation && graph == 0, call);
      });
  if (!times.ok()) return times.status();
  timed.time = times->front();
  if (both) timed.prepared = (*times)[1].median;
  if (wishes.beside) timed.beside = times->back();
  return timed;
}

absl::StatusOr<std::vector<Phase>> time_phases(const Stream& stream, KernelCache& cache,
                                               LibraryBench& library, const Product& product, ProductRun& run,
                                               const TimedProduct& timed, const TimingOptions& options,
                                               bool plain) {
  std::vector<Phase> phases;
  if (run.prepares()) {
    const absl::StatusOr<Timing> preparation =
        time_calls(stream, timed.calls, options.replays(), [&](u32) { return run.prepare(stream); });
    if (!preparation.ok()) return preparation.status();
    phases.push_back(
        {str_cat("prepare activations ", detail::field_text(run.a_type())), 1, preparation->median});
  }
  const std::size_t first = phases.size();
  std::vector<u32> rows;  // of a, which each phase behind the first ones takes
  u32 left = product.shape.m;
  for (const std::string& text : timed.ran.kernels) {
    std::optional<KernelType> kernel;
    if (!LibraryBench::is_launch(text)) {
      absl::StatusOr<KernelType> parsed = parse_kernel(text);
      if (!parsed.ok()) return parsed.status();
      kernel = *std::move(parsed);
    }
    const u32 taken = kernel ? rows_of(*kernel, left) : left;
    if (kernel && (kernel->get_if<Gemv>() || kernel->get_if<BatchedGemv>())) left -= taken;
    std::size_t i = first;
    while (i < phases.size() && (phases[i].name != text || rows[i - first] != taken)) ++i;
    if (i < phases.size()) {  // one more of the same shape: the next part of a matrix, or of a batch
      phases[i].microseconds += phases[i].microseconds / phases[i].launches;
      ++phases[i].launches;
      continue;
    }
    const absl::StatusOr<double> microseconds =
        kernel ? time_kernel(cache, *kernel, arguments_for(**kernel, taken, product.shape.k), options, plain)
               : time_launch(library, text);
    if (!microseconds.ok()) return microseconds.status();
    phases.push_back({text, 1, *microseconds});
    rows.push_back(taken);
  }
  return phases;
}

}  // namespace ptxgen::tool

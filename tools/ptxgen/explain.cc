// ptxgen explain: what a kernel is, and what its first CTAs do on the emulator.
#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "ptxgen/kernel_cache.h"
#include "src/builder/instruction_table.h"
#include "src/runtime/ptxas.h"
#include "tools/ptxgen/arguments.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/occupancy.h"
#include "tools/ptxgen/table.h"
#include "tools/ptxgen/trial.h"

namespace ptxgen::tool {
namespace {

struct Options {
  Options(CLI::App& app, const NamedKernel& named)
      : kernel(app, named), scalars(app), target(app), device(app), codegen(app) {
    app.add_flag("--json", json, "print JSON");
  }
  KernelOptions kernel;
  ScalarOptions scalars;
  TargetOption target;
  DeviceOption device;
  CodegenOption codegen;
  bool json = false;
};

// What an instruction is counted as: its kind, and for computations the chapter of the PTX ISA manual.
std::string_view kind_of(const Instruction& instruction) {
  switch (instruction.op) {
    case Op::kIf: return "branch";
    case Op::kLoop:
    case Op::kWhile: return "loop";
    default: break;
  }
  const Row& row = ptxgen::row(instruction.op);
  switch (row.kind) {
    case Kind::Load:
    case Kind::StrongLoad: return "load";
    case Kind::Store: return "store";
    case Kind::Atomic: return "atomic";
    case Kind::Convergent: return "warp exchange";
    case Kind::Aligned:
    case Kind::Warpgroup: return "tensor core";
    case Kind::Barrier:
    case Kind::CountedBarrier:
    case Kind::MBarrier: return "barrier";
    case Kind::AsyncCopy: return "asynchronous copy";
    case Kind::Fence: return "fence";
    case Kind::Hint: return "hint";
    case Kind::Clock: return "clock";
    case Kind::Control: return "control";
    case Kind::Thread: return "special register";
    case Kind::Pure: break;
  }
  constexpr std::pair<std::string_view, std::string_view> kChapters[] = {
      {"9.7.1 ", "integer arithmetic"}, {"9.7.3 ", "floating point"}, {"9.7.4 ", "half precision"},
      {"9.7.6 ", "comparison"},         {"9.7.7 ", "comparison"},     {"9.7.8 ", "logic and shift"},
      {"9.7.9 cvt", "conversion"},      {"9.7.9 ld", "parameter"},    {"9.7.9 ", "data movement"},
      {"10 ", "special register"}};
  for (const auto& [section, name] : kChapters) {
    if (row.section.starts_with(section)) return name;
  }
  return "other";
}

using Counts = std::map<std::string_view, u32>;

// Instructions as they stand in the text; a loop's body counts once.
void count(const Kernel& kernel, u32 region, Counts& counts) {
  const auto structural = [](Op op) { return op == Op::kVarRead || op == Op::kVarWrite || op == Op::kYield; };
  for (u32 i = kernel.regions[region].first; i != kNone; i = kernel.instructions[i].next) {
    const Instruction& effect = kernel.instructions[i];
    for (u32 v = kernel.gaps[effect.gap].first; v != kNone; v = kernel.instructions[v].next) {
      if (!structural(kernel.instructions[v].op)) ++counts[kind_of(kernel.instructions[v])];
    }
    if (structural(effect.op)) continue;
    ++counts[kind_of(effect)];
    for (const u32 inner : effect.inner) {
      if (inner != kNone) count(kernel, inner, counts);
    }
  }
}

Table instructions_of(const Kernel& kernel) {
  Counts counts;
  count(kernel, 0, counts);
  std::vector<std::pair<std::string_view, u32>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Table table({{"kind", "instructions"}, {"count", "count"}});
  u32 total = 0;
  for (const auto& [kind, number] : sorted) {
    table.add({kind, number});
    total += number;
  }
  table.add({"all", total});
  return table;
}

// Of a text with one a line, as both code generators print it.
u32 count_instructions(std::string_view ptx) {
  u32 count = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(ptx.data(), ptx.size()), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    count += absl::EndsWith(line, ";") && line[0] != '.' && line[0] != '/';
  }
  return count;
}

Json to_json(const Dim3& dim) {
  return {dim.x, dim.y, dim.z};
}
std::string to_string(const Dim3& dim) {
  return str_cat(dim.x, " x ", dim.y, " x ", dim.z);
}

Table geometry_of(const Descriptor& descriptor, ArgValues values, const GeneratedKernel& generated,
                  double generation_ms, Target asked) {
  const LaunchShape shape = descriptor.launch_shape(values);
  u64 read = 0, written = 0;
  for (const ArgInfo& argument : descriptor.arguments(values)) {
    const bool both = argument.direction == Direction::kInOut;
    if (both || argument.direction == Direction::kIn) read += argument.bytes;
    if (both || argument.direction == Direction::kOut) written += argument.bytes;
  }
  Table table({{"kernel", "kernel"},
               {"target", "generated for"},
               {"needs_target", "needs"},
               {"needs_ptx_isa", "needs PTX ISA"},
               {"grid", "grid (CTAs)"},
               {"block", "block (threads)"},
               {"static_shared_bytes", "static shared"},
               {"dynamic_shared_bytes", "dynamic shared"},
               {"ptx_instructions", "PTX instructions"},
               {"generation_ms", "generated in"},
               {"bytes_read", "bytes read"},
               {"bytes_written", "bytes written"}});
  table.add({descriptor.text(),
             asked.to_string(),
             generated.target.to_string(),
             generated.isa.to_string(),
             {to_json(shape.grid), to_string(shape.grid)},
             {to_json(shape.block), to_string(shape.block)},
             generated.static_shared_bytes,
             shape.dynamic_shared_bytes,
             count_instructions(generated.ptx),
             {Json(generation_ms), absl::StrFormat("%.2f ms", generation_ms)},
             read,
             written});
  return table;
}

// What a compiler made of the kernel, or why that is not known.
class Compiled {
 public:
  void add(const std::string& compiler, u32 registers, Json spilled, u32 ctas, u64 threads, Target target) {
    const double share = static_cast<double>(ctas * ((threads + 31) / 32)) / limits(target).warps_per_sm;
    table_.add({compiler, registers, std::move(spilled), ctas,
                Cell{Json(share), absl::StrFormat("%.0f %%", 100 * share)}});
  }
  void unknown(const std::string& compiler, absl::string_view reason) {
    unknown_.push_back({{"compiler", compiler}, {"reason", std::string(reason)}});
  }

  Json json() const { return {{"known", table_.json()}, {"not_known", unknown_}}; }
  std::string text() const {
    std::string text = table_.empty() ? "" : table_.text();
    for (const Json& reason : unknown_) {
      str_append(&text, "registers, spills, occupancy by ", reason["compiler"].get<std::string>(),
                 ": not known: ", printable(reason["reason"].get<std::string>()), "\n");
    }
    return text;
  }

 private:
  Table table_{{{"compiler", "compiled by"},
                {"registers", "registers"},
                {"spilled_bytes", "spilled bytes"},
                {"ctas_per_sm", "CTAs/SM"},
                {"occupancy", "occupancy"}}};
  Json unknown_ = Json::array();
};

absl::Status ask_ptxas(const GeneratedKernel& kernel, const LaunchShape& shape, Target target,
                       Compiled& compiled) {
  const absl::StatusOr<Ptxas> ptxas = Ptxas::find();
  if (!ptxas.ok()) return ptxas.status();
  const absl::StatusOr<PtxasReport> report = ptxas->assemble(kernel.ptx, target);
  if (!report.ok()) return report.status();
  const PtxasEntry* entry = report->find(kernel.entry);
  if (entry == nullptr) return absl::InternalError(str_cat(ptxas->path(), " refused it: ", report->log));
  const u64 threads = shape.block.x * shape.block.y * shape.block.z;
  compiled.add(str_cat("ptxas for ", target.to_string()), entry->registers,
               entry->spill_store_bytes + entry->spill_load_bytes,
               ctas_per_sm(limits(target), threads, entry->registers,
                           entry->shared_bytes + shape.dynamic_shared_bytes),
               threads, target);
  return absl::OkStatus();
}

absl::Status ask_device(const Descriptor& descriptor, const LaunchShape& shape, const Device& device,
                        Codegen codegen, Compiled& compiled) {
  if (device.kind() != DeviceKind::kCuda) return absl::NotFoundError(device.reason());
  KernelCache cache(device, {.codegen = codegen});
  const absl::StatusOr<CompiledKernel> kernel = cache.get(descriptor);
  if (!kernel.ok()) return kernel.status();
  const u64 threads = shape.block.x * shape.block.y * shape.block.z;
  const absl::StatusOr<u32> ctas = kernel->function().max_ctas_per_sm(threads, shape.dynamic_shared_bytes);
  if (!ctas.ok()) return ctas.status();
  // The driver tells local memory, of which spills are a part.
  const FunctionInfo& function = kernel->function().info();
  compiled.add(device.description(), function.registers, function.local_bytes, *ctas, threads,
               device.target());
  return absl::OkStatus();
}

absl::StatusOr<Outcome> explain(const Options& options) {
  const absl::StatusOr<KernelType> type = options.kernel.kernel();
  if (!type.ok()) return type.status();
  const Descriptor& descriptor = **type;
  const absl::StatusOr<std::vector<u64>> values = options.scalars.values(descriptor);
  if (!values.ok()) return values.status();
  const absl::StatusOr<Target> target = options.target.target();
  if (!target.ok()) return target.status();
  const absl::StatusOr<Codegen> codegen = options.codegen.codegen();
  if (!codegen.ok()) return codegen.status();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  const absl::StatusOr<Kernel> kernel = build_kernel(descriptor, {.target = *target});
  if (!kernel.ok()) return kernel.status();
  (void)describe(*codegen);  // opens what it needs, once a process
  const auto start = std::chrono::steady_clock::now();
  const absl::StatusOr<GeneratedKernel> generated =
      generate(descriptor, {.build = {.target = *target}, .codegen = *codegen});
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  if (!generated.ok()) return generated.status();

  const LaunchShape shape = descriptor.launch_shape(*values);
  Compiled compiled;
  if (absl::Status s = ask_ptxas(*generated, shape, *target, compiled); !s.ok())
    compiled.unknown("ptxas", s.message());
  if (absl::Status s = ask_device(descriptor, shape, *device, *codegen, compiled); !s.ok())
    compiled.unknown("the driver", s.message());

  const Table geometry = geometry_of(descriptor, *values, *generated, took.count(), *target),
              instructions = instructions_of(*kernel);
  const Trial trial = Trial::run(descriptor, *values, *generated);
  if (!options.json) {
    return Outcome{str_cat(geometry.text_by_cell(), "\n", instructions.text(), "\n", compiled.text(), "\n",
                           trial.text())};
  }
  Json json = geometry.json().front();
  json["instructions"] = instructions.json();
  json["compiled"] = compiled.json();
  json["emulated"] = trial.json();
  return Outcome{to_text(json)};
}

}  // namespace

Action declare_explain(CLI::App& app, const NamedKernel& named) {
  const auto options = std::make_shared<Options>(app, named);
  return [options] { return explain(*options); };
}

}  // namespace ptxgen::tool

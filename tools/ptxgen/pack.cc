// ptxgen pack: machine code for many kernels and targets in one file, made without a GPU.
#include <memory>
#include <set>

#include "absl/strings/str_join.h"
#include "ptxgen/environment.h"
#include "ptxgen/gemv.h"
#include "ptxgen/pack.h"
#include "src/runtime/crew.h"
#include "src/runtime/ptxas.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"
#include "tools/ptxgen/kernel_list.h"
#include "tools/ptxgen/progress.h"
#include "tools/ptxgen/table.h"

namespace ptxgen::tool {
namespace {

struct Options {
  explicit Options(CLI::App& app) : list(app), codegen(app, true) {
    app.add_option("--target", targets, "the GPUs to compile for, as sm_90a,sm_89")->type_name("LIST");
    app.add_option("--sm-count", sm_count,
                   str_cat("with --gguf: SMs of those GPUs, by which products are planned; default: ",
                           kMeasuredSmCount))
        ->transform(whole_number(1, 4096))
        ->type_name("NUMBER");
    app.add_option("-o,--output", output, "the pack to write")->type_name("FILE");
    app.add_option("--jobs", threads, "how many ptxas at once; default: one a processor, at most 16")
        ->transform(whole_number(1, 256))
        ->type_name("NUMBER");
    app.add_flag("--json", json, "print JSON");
  }
  KernelListOptions list;
  CodegenOption codegen;
  std::string targets, output;
  u32 sm_count = kMeasuredSmCount;
  u32 threads = 0;
  bool json = false;
};

struct Job {
  KernelType kernel;
  DeviceProperties device;
  Codegen codegen;
  absl::StatusOr<std::vector<StoredKernel>> made = absl::UnknownError("");
  bool refused = false;  // the target cannot run it; else a failure is a fault
};

absl::StatusOr<std::vector<Target>> targets_of(const Options& options) {
  if (options.targets.empty())
    return absl::InvalidArgumentError(
        "--target is missing; name the GPUs to compile for, as --target sm_90a,sm_89");
  const auto names = split_list("--target", options.targets);
  if (!names.ok()) return names.status();
  std::vector<Target> targets;
  for (const std::string& name : *names) {
    const absl::StatusOr<Target> target = Target::parse(name);
    if (!target.ok()) return target.status();
    if (std::find(targets.begin(), targets.end(), *target) != targets.end())
      return absl::InvalidArgumentError(str_cat("--target gives ", name, " twice; give each target once"));
    targets.push_back(*target);
  }
  return targets;
}

// "ptxas 13.0.88" of a text that ends "release 13.0, V13.0.88\nBuild ...".
std::string name_of(const Ptxas& ptxas) {
  const std::string& text = ptxas.version();
  const std::size_t mark = text.find(", V");
  if (mark == text.npos) return "ptxas";
  return str_cat("ptxas ", text.substr(mark + 3, text.find_first_of("\r\n", mark) - mark - 3));
}

// The ptxas to use; nothing where there is none. One that is named and cannot be run is an error.
absl::StatusOr<std::optional<Ptxas>> find_ptxas() {
  absl::StatusOr<Ptxas> ptxas = Ptxas::find();
  if (ptxas.ok()) return *std::move(ptxas);
  if (absl::IsNotFound(ptxas.status()) && env::text(env::kPtxas).empty()) return std::nullopt;
  return ptxas.status();
}

// LLVM's PTX with the IR it was made of, for machines without LLVM.
absl::StatusOr<StoredKernel> generated_by_llvm(const Job& job, const StoredKernel& stored) {
  const absl::StatusOr<Kernel> kernel = build_kernel(*job.kernel, {.target = job.device.target});
  if (!kernel.ok()) return kernel.status();
  StoredKernel generated = {
      stored.key, print_llvm_ir(absl::MakeConstSpan(&*kernel, 1)), {ImageKind::kPtx, stored.ptx, ""}};
  generated.key.compiler = stored.key.codegen;
  return generated;
}

absl::Status assemble(const Job& job, const Ptxas& ptxas, StoredKernel& stored) {
  absl::StatusOr<PtxasReport> report = ptxas.assemble(stored.ptx, job.device.target);
  if (!report.ok()) return report.status();
  if (!report->ok) {
    return absl::InternalError(
        str_cat(job.kernel->text(), " for ", job.device.target.to_string(), ": ", report->log));
  }
  stored.key.compiler = name_of(ptxas);
  stored.image = {ImageKind::kCubin, std::move(report->cubin), ""};
  return absl::OkStatus();
}

absl::Status make(Job& job, const std::optional<Ptxas>& ptxas) {
  const absl::StatusOr<GeneratedKernel> generated =
      generate(*job.kernel, {.build = {.target = job.device.target}, .codegen = job.codegen});
  job.refused = !generated.ok();
  if (job.refused) return generated.status();
  StoredKernel stored = {KernelKey::of_device(job.device, describe(job.codegen)), generated->ptx, {}};
  stored.key.descriptor = job.kernel->text();
  std::vector<StoredKernel> made;
  if (job.codegen == Codegen::kLlvm) {
    absl::StatusOr<StoredKernel> by_llvm = generated_by_llvm(job, stored);
    if (!by_llvm.ok()) return by_llvm.status();
    made.push_back(*std::move(by_llvm));
  }
  if (ptxas) {
    if (absl::Status s = assemble(job, *ptxas, stored); !s.ok()) return s;
    made.push_back(std::move(stored));
  } else if (made.empty()) {
    stored.key.compiler = "none";
    stored.image = {ImageKind::kPtx, stored.ptx, ""};
    made.push_back(std::move(stored));
  }
  job.made = std::move(made);
  return absl::OkStatus();
}

absl::Status make_all(std::vector<Job>& jobs, const std::optional<Ptxas>& ptxas, u32 threads) {
  ProgressBar progress(jobs.size());
  internal::Crew crew(jobs.size(), internal::crew_size(threads), [&](std::size_t i) {
    if (absl::Status s = make(jobs[i], ptxas); !s.ok()) jobs[i].made = std::move(s);
  });
  for (std::size_t done = 0; done < jobs.size(); ++done) {
    const Job& job = jobs[crew.take()];
    if (!job.made.ok() && !job.refused) return job.made.status();
    progress.advance(1);
    progress.show_at(job.kernel->text());
  }
  return absl::OkStatus();
}

// A job for each kernel, target and code generator, and each note once.
absl::Status list_jobs(const Options& options, const std::vector<Target>& targets,
                       const std::vector<Codegen>& codegens, std::vector<Job>& jobs,
                       std::vector<std::string>& notes) {
  for (const Target target : targets) {
    const auto device = DeviceProperties::of(target, DeviceKind::kCuda, options.sm_count);
    const absl::StatusOr<KernelList> list = options.list.kernels(device);
    if (!list.ok()) return list.status();
    for (const KernelType& kernel : list->kernels) {
      for (const Codegen codegen : codegens) jobs.push_back({kernel, device, codegen});
    }
    for (const std::string& note : list->notes) {
      if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Outcome> pack(const Options& options) {
  const absl::StatusOr<std::vector<Target>> targets = targets_of(options);
  if (!targets.ok()) return targets.status();
  if (options.output.empty())
    return absl::InvalidArgumentError("-o is missing; name the pack to write, as -o model.ptxpack");
  const absl::StatusOr<std::vector<Codegen>> codegens = options.codegen.codegens();
  if (!codegens.ok()) return codegens.status();
  std::vector<Job> jobs;
  std::vector<std::string> notes;
  if (absl::Status s = list_jobs(options, *targets, *codegens, jobs, notes); !s.ok()) return s;
  absl::StatusOr<OutputFile> file = OutputFile::create(options.output);  // whether it can be is known first
  if (!file.ok()) return file.status();
  const absl::StatusOr<std::optional<Ptxas>> ptxas = find_ptxas();
  if (!ptxas.ok()) return ptxas.status();

  if (absl::Status s = make_all(jobs, *ptxas, options.threads); !s.ok()) return s;

  Table table({{"kernel", "kernel"},
               {"target", "target"},
               {"codegen", codegens->size() > 1 ? "codegen" : ""},
               {"kind", "kind"},
               {"bytes", "bytes"},
               {"detail", "detail"}});
  std::vector<StoredKernel> made;
  for (Job& job : jobs) {
    if (!job.made.ok()) {
      table.add({job.kernel->text(), job.device.target.to_string(), describe(job.codegen), "none", Json(),
                 std::string(job.made.status().message())});
      continue;
    }
    for (StoredKernel& stored : *job.made) {
      const Image& image = stored.image;
      table.add({job.kernel->text(), job.device.target.to_string(), describe(job.codegen),
                 image.kind == ImageKind::kCubin ? "cubin" : "PTX", image.bytes.size(), Json()});
      made.push_back(std::move(stored));
    }
  }
  if (made.empty())
    return absl::InvalidArgumentError(str_cat(
        "nothing to pack: ",
        std::string(jobs.empty() ? notes.front() : std::string(jobs.front().made.status().message()))));
  const std::string bytes = make_pack(made);
  if (absl::Status s = file->write({reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()}); !s.ok())
    return s;
  if (absl::Status s = file->commit(); !s.ok()) return s;

  if (!*ptxas) {
    notes.emplace_back(
        "there is no ptxas here, so the pack holds PTX, which each process compiles as if there were no "
        "pack; "
        "install a ptxas or name one in PTXGEN_PTXAS");
  }
  if (options.json) {
    return Outcome{to_text(
        {{"output", options.output}, {"bytes", bytes.size()}, {"entries", table.json()}, {"notes", notes}})};
  }
  std::string text = str_cat(table.text(), "\n", made.size(), made.size() == 1 ? " entry" : " entries",
                             " in ", printable(options.output), ", ", bytes.size(), " bytes\n");
  for (const std::string& note : notes) str_append(&text, "note: ", printable(note), "\n");
  return Outcome{std::move(text)};
}

}  // namespace

Action declare_pack(CLI::App& app, const NamedKernel&) {
  const auto options = std::make_shared<Options>(app);
  return [options] { return pack(*options); };
}

}  // namespace ptxgen::tool

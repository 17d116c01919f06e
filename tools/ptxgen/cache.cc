// ptxgen cache: what the cache directory holds, why a kernel is not in it, and what to do with it.
#include <fnmatch.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "absl/strings/str_join.h"
#include "ptxgen/cubin_store.h"
#include "ptxgen/environment.h"
#include "ptxgen/kernel_cache.h"
#include "ptxgen/pack.h"
#include "tools/ptxgen/command.h"
#include "tools/ptxgen/files.h"
#include "tools/ptxgen/kernel_list.h"
#include "tools/ptxgen/progress.h"
#include "tools/ptxgen/table.h"
#include "tools/ptxgen/why.h"

namespace ptxgen::tool {
namespace {

struct Options {
  Options(CLI::App& app, const NamedKernel& named);

  KernelOptions kernel;
  bool kernel_is_named;
  KernelListOptions list;
  DeviceOption device;
  std::string action, file, match, max_bytes;
  u32 threads = 0;
  bool json = false;
  CLI::Option *match_option, *max_bytes_option, *threads_option, *device_option;
};

using Act = absl::StatusOr<Outcome>(const Options& options, CubinStore& store);

Act list, why, verify, collect, clear, export_pack, import_pack, prepare;

// What an action takes besides --json.
enum Takes : unsigned {
  kNothing = 0,
  kFile = 1,  // must be given
  kFileOrNone = 2,
  kMatch = 4,
  kMaxBytes = 8,
  kKernel = 16,
  kKernels = 32,
  kDevice = 64,
};

struct CacheAction {
  std::string_view name, meaning;
  unsigned takes;
  Act* act;
};

constexpr CacheAction kActions[] = {
    {"ls", "list the kernels that are kept", kMatch, list},
    {"why",
     "say whether --kernel with its constants is kept for --device, or which field of its key makes it a "
     "miss",
     kKernel | kDevice, why},
    {"verify", "read and check every entry, of the directory or of the pack FILE", kFileOrNone, verify},
    {"gc", "remove what writers that died left, and the least recently used beyond --max-bytes", kMaxBytes,
     collect},
    {"clear", "remove the kernels", kMatch, clear},
    {"export", "write the kernels into the pack FILE", kFile | kMatch, export_pack},
    {"import", "keep the kernels of the pack FILE", kFile | kMatch, import_pack},
    {"prepare", "compile the kernels of --gguf or --list for --device, and keep them", kKernels | kDevice,
     prepare},
};

std::string names_of_actions() {
  return absl::StrJoin(kActions, ", ", [](std::string* out, const CacheAction& a) { out->append(a.name); });
}

std::string explain_actions() {
  std::string text = "what to do:";
  for (const CacheAction& a : kActions) {
    str_append(&text, &a == kActions ? "\n" : ";\n", a.name, (a.takes & kFile) != 0 ? " FILE" : "",
               (a.takes & kFileOrNone) != 0 ? " [FILE]" : "", ": ", a.meaning);
  }
  return text;
}

Options::Options(CLI::App& app, const NamedKernel& named)
    : kernel(app, named), kernel_is_named(named.is_named()), list(app), device(app) {
  if (!kernel_is_named) app.allow_extras(false);
  app.add_option("ACTION", action, explain_actions())->type_name("");
  app.add_option("FILE", file, "a pack")->type_name("");
  match_option = app.add_option("--match", match, "only kernels whose descriptor matches, as 'q4k_* n=4096*'")
                     ->type_name("GLOB");
  max_bytes_option =
      app.add_option("--max-bytes", max_bytes,
                     str_cat("what may stay, as 100M; default: what ", env::kCacheMaxBytes.name, " says"))
          ->type_name("BYTES");
  threads_option = app.add_option("--jobs", threads, "that compile; default: one a processor, at most 16")
                       ->transform(whole_number(1, PrepareOptions::kMaxThreads))
                       ->type_name("NUMBER");
  device_option = app.get_option("--device");
  app.add_flag("--json", json, "print JSON");
}

absl::StatusOr<const CacheAction*> action_of(const Options& options) {
  const auto found = std::find_if(std::begin(kActions), std::end(kActions),
                                  [&](const CacheAction& a) { return a.name == options.action; });
  if (found == std::end(kActions)) {
    return absl::InvalidArgumentError(
        str_cat(options.action.empty() ? std::string("no action is given")
                                       : str_cat("'", options.action, "' is no action"),
                "; choose one of ", names_of_actions(), "; `ptxgen cache --help` explains them"));
  }
  const unsigned takes = found->takes;
  const std::pair<bool, unsigned> given[] = {{!options.file.empty(), kFile | kFileOrNone},
                                             {options.match_option->count() > 0, kMatch},
                                             {options.max_bytes_option->count() > 0, kMaxBytes},
                                             {options.kernel_is_named, kKernel},
                                             {options.list.given(), kKernels},
                                             {options.threads_option->count() > 0, kKernels},
                                             {options.device_option->count() > 0, kDevice}};
  constexpr std::string_view kNames[] = {"a FILE",           "--match", "--max-bytes", "--kernel",
                                         "--gguf or --list", "--jobs",  "--device"};
  for (std::size_t i = 0; i < std::size(given); ++i) {
    if (given[i].first && (takes & given[i].second) == 0)
      return absl::InvalidArgumentError(
          str_cat(kNames[i], " is given; `ptxgen cache ", found->name, "` takes none: leave it out"));
  }
  if ((takes & kFile) != 0 && options.file.empty())
    return absl::InvalidArgumentError(
        str_cat("no FILE is given; write it behind, as in `ptxgen cache ", found->name, " kernels.ptxpack`"));
  return found;
}

bool matches(const Options& options, const KernelKey& key) {
  return options.match.empty() || ::fnmatch(options.match.c_str(), key.descriptor.c_str(), 0) == 0;
}

std::string ago(std::chrono::system_clock::time_point time) {
  const auto seconds =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now() - time).count();
  if (seconds < 0) return "in the future";
  if (seconds < 120) return str_cat(seconds, " s ago");
  if (seconds < 7200) return str_cat(seconds / 60, " min ago");
  if (seconds < 172800) return str_cat(seconds / 3600, " h ago");
  return str_cat(seconds / 86400, " days ago");
}

Cell when(std::chrono::system_clock::time_point time) {
  return {Json(std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch()).count()), ago(time)};
}

Table table_of_kernels(bool with_use) {
  return Table({{"descriptor", "kernel"},
                {"codegen", ""},
                {"target", "target"},
                {"capability", "capability"},
                {"isa", "PTX ISA"},
                {"compiler", "compiler"},
                {"library", "ptxgen"},
                {"kind", ""},
                {"bytes", "bytes"},
                {"last_used", with_use ? "last used" : ""},
                {"file", ""},
                {"state", "state"}});
}

void add_row(Table& table, const absl::StatusOr<StoredKernel>& kernel, u64 bytes, Cell last_used,
             const std::string& file) {
  std::vector<Cell> row;
  for (const KernelKey::Field& field : KernelKey::kFields)
    row.push_back(kernel.ok() ? Cell(kernel->key.*field.member) : Cell(Json()));
  const bool cubin = kernel.ok() && kernel->image.kind == ImageKind::kCubin;
  row.push_back(kernel.ok() ? Cell(cubin ? "cubin" : "ptx") : Cell(Json()));
  row.push_back(bytes);
  row.push_back(std::move(last_used));
  row.push_back(file);
  row.push_back(!kernel.ok() ? Cell(str_cat("damaged: ", std::string(kernel.status().message())))
                : cubin      ? Cell("ok")
                             : Cell("ok (PTX)"));
  table.add(std::move(row));
}

std::string head(const CubinStore& store, u64 entries, u64 bytes) {
  return str_cat(printable(store.directory()), ": ", entries, entries == 1 ? " kernel, " : " kernels, ",
                 bytes, " of ", store.max_bytes(), " bytes\n");
}

absl::StatusOr<Outcome> list(const Options& options, CubinStore& store) {
  const auto entries = store.entries();
  if (!entries.ok()) return entries.status();
  Table table = table_of_kernels(true);
  u64 bytes = 0;
  for (const CubinStore::Entry& entry : *entries) {
    bytes += entry.bytes;
    if (entry.kernel.ok() ? !matches(options, entry.kernel->key) : !options.match.empty()) continue;
    add_row(table, entry.kernel, entry.bytes, when(entry.last_used), entry.path);
  }
  if (options.json) {
    return Outcome{to_text({{"directory", store.directory()},
                            {"bytes", bytes},
                            {"max_bytes", store.max_bytes()},
                            {"kernels", table.json()}})};
  }
  return Outcome{str_cat(head(store, entries->size(), bytes), table.empty() ? "" : "\n",
                         table.empty() ? "" : table.text())};
}

absl::StatusOr<Outcome> why(const Options& options, CubinStore& store) {
  const absl::StatusOr<KernelType> kernel = options.kernel.kernel();
  if (!kernel.ok()) return kernel.status();
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  return explain_miss(store, *kernel, *device, options.json);
}

absl::StatusOr<Outcome> verify(const Options& options, CubinStore& store) {
  Table table = table_of_kernels(false);
  u64 good = 0, damaged = 0;
  const auto add = [&](const absl::StatusOr<StoredKernel>& kernel, u64 bytes, const std::string& file) {
    ++(kernel.ok() ? good : damaged);
    add_row(table, kernel, bytes, Json(), file);
  };
  if (options.file.empty()) {
    const auto entries = store.entries();
    if (!entries.ok()) return entries.status();
    for (const CubinStore::Entry& entry : *entries) add(entry.kernel, entry.bytes, entry.path);
  } else {
    const absl::StatusOr<Pack> pack = Pack::open(options.file);
    if (!pack.ok()) return pack.status();
    for (std::size_t i = 0; i < pack->size(); ++i) {
      const absl::StatusOr<StoredKernel> kernel = pack->entry(i);
      add(kernel, kernel.ok() ? kernel->image.bytes.size() : 0, options.file);
    }
  }
  const int exit_status = damaged == 0 ? kSuccess : kNotVerified;
  if (options.json)
    return Outcome{to_text({{"good", good}, {"damaged", damaged}, {"kernels", table.json()}}), exit_status};
  return Outcome{str_cat(table.empty() ? "" : table.text() + "\n", good, " good, ", damaged, " damaged\n"),
                 exit_status};
}

Outcome swept(const Options& options, const CubinStore::Swept& s) {
  if (options.json) {
    return Outcome{to_text({{"removed", s.removed},
                            {"removed_bytes", s.removed_bytes},
                            {"kept", s.kept},
                            {"kept_bytes", s.kept_bytes}})};
  }
  return Outcome{str_cat("removed ", s.removed, s.removed == 1 ? " file, " : " files, ", s.removed_bytes,
                         " bytes; ", s.kept, s.kept == 1 ? " file, " : " files, ", s.kept_bytes,
                         " bytes are left\n")};
}

absl::StatusOr<Outcome> collect(const Options& options, CubinStore& store) {
  u64 most = store.max_bytes();
  if (options.max_bytes_option->count() > 0) {
    const auto given = env::parse_bytes(options.max_bytes);
    if (!given.has_value()) {
      return absl::InvalidArgumentError(
          str_cat("--max-bytes is '", options.max_bytes, "'; give a number of bytes, as 1000000 or 100M"));
    }
    most = *given;
  }
  const absl::StatusOr<CubinStore::Swept> result = store.sweep(most);
  if (!result.ok()) return result.status();
  return swept(options, *result);
}

absl::StatusOr<Outcome> clear(const Options& options, CubinStore& store) {
  const auto entries = store.entries();
  if (!entries.ok()) return entries.status();
  CubinStore::Swept result;
  for (const CubinStore::Entry& entry : *entries) {
    const bool wanted = entry.kernel.ok() ? matches(options, entry.kernel->key) : options.match.empty();
    if (wanted) {
      if (absl::Status s = store.remove(entry); !s.ok()) return s;
    }
    ++(wanted ? result.removed : result.kept);
    (wanted ? result.removed_bytes : result.kept_bytes) += entry.bytes;
  }
  return swept(options, result);
}

absl::StatusOr<Outcome> export_pack(const Options& options, CubinStore& store) {
  auto entries = store.entries();
  if (!entries.ok()) return entries.status();
  std::vector<StoredKernel> kernels;
  for (CubinStore::Entry& entry : *entries) {
    if (entry.kernel.ok() && matches(options, entry.kernel->key)) kernels.push_back(*std::move(entry.kernel));
  }
  if (kernels.empty()) {
    return absl::InvalidArgumentError(str_cat("there is nothing to export: none of the ", entries->size(),
                                              " kernels in '", store.directory(), "' ",
                                              options.match.empty() ? "is in order" : "matches"));
  }
  const std::string bytes = make_pack(kernels);
  if (absl::Status s = write_file(options.file, bytes); !s.ok()) return s;
  if (options.json) return Outcome{to_text({{"exported", kernels.size()}, {"bytes", bytes.size()}})};
  return Outcome{str_cat("exported ", kernels.size(), kernels.size() == 1 ? " kernel, " : " kernels, ",
                         bytes.size(), " bytes\n")};
}

absl::StatusOr<Outcome> import_pack(const Options& options, CubinStore& store) {
  const absl::StatusOr<Pack> pack = Pack::open(options.file);
  if (!pack.ok()) return pack.status();
  u64 imported = 0, others = 0, damaged = 0, unmatched = 0;
  for (std::size_t i = 0; i < pack->size(); ++i) {
    const absl::StatusOr<StoredKernel> kernel = pack->entry(i);
    if (!kernel.ok()) {
      ++damaged;
    } else if (!matches(options, kernel->key)) {
      ++unmatched;
    } else if (kernel->image.kind != ImageKind::kCubin || !kernel->key.compiler.starts_with("driver ")) {
      ++others;  // a cache asks the disk for what its own driver compiles
    } else {
      if (absl::Status s = store.keep(kernel->key, kernel->ptx, kernel->image); !s.ok()) return s;
      ++imported;
    }
  }
  const int exit_status = damaged == 0 ? kSuccess : kNotVerified;
  if (options.json) {
    return Outcome{to_text({{"imported", imported},
                            {"not_by_a_driver", others},
                            {"damaged", damaged},
                            {"unmatched", unmatched}}),
                   exit_status};
  }
  std::string text = str_cat("imported ", imported, imported == 1 ? " kernel" : " kernels");
  if (damaged > 0) str_append(&text, ", passed over ", damaged, " damaged");
  if (others > 0)
    str_append(&text, ", passed over ", others,
               " that no driver compiled: open the file as a pack to use them");
  return Outcome{text + "\n", exit_status};
}

absl::StatusOr<Outcome> prepare(const Options& options, CubinStore&) {
  const absl::StatusOr<Device> device = options.device.open();
  if (!device.ok()) return device.status();
  const absl::StatusOr<KernelList> wanted = options.list.kernels(device->properties());
  if (!wanted.ok()) return wanted.status();
  KernelCache cache(*device);
  std::vector<absl::Status> statuses;
  {
    ProgressBar bar(wanted->kernels.size());
    statuses = cache.prepare(wanted->kernels,
                             {.threads = options.threads, .progress = [&](const PrepareProgress& p) {
                                bar.advance(1);
                                bar.show_at(p.kernel->text());
                              }});
  }
  std::vector<std::string> failures;
  for (const absl::Status& status : statuses) {
    if (!status.ok()) failures.emplace_back(status.message());
  }
  if (!cache.store_status().ok()) say(str_cat("warning: ", std::string(cache.store_status().message())));
  const KernelCacheStats stats = cache.stats();
  const int exit_status = failures.empty() ? kSuccess : kNotVerified;
  if (options.json) {
    return Outcome{to_text({{"device", device->description()},
                            {"kernels", statuses.size()},
                            {"compiled", stats.compiles - stats.failures},
                            {"from_disk", stats.from_disk},
                            {"failures", failures},
                            {"notes", wanted->notes}}),
                   exit_status};
  }
  std::string text = str_cat(device->description(), "\n", stats.compiles - stats.failures, " compiled, ",
                             stats.from_disk, " found on disk, ", failures.size(), " failed\n");
  for (const std::string& failure : failures) str_append(&text, "failed: ", printable(failure), "\n");
  for (const std::string& note : wanted->notes) str_append(&text, "note: ", printable(note), "\n");
  return Outcome{std::move(text), exit_status};
}

absl::StatusOr<Outcome> run(const Options& options) {
  const absl::StatusOr<const CacheAction*> action = action_of(options);
  if (!action.ok()) return action.status();
  CubinStore store;
  const bool needs_none = (*action)->act == prepare || !options.file.empty();
  if (!store.is_open() && !(needs_none && (*action)->act != import_pack && (*action)->act != export_pack))
    return store.status();
  return (*action)->act(options, store);
}

}  // namespace

Action declare_cache(CLI::App& app, const NamedKernel& named) {
  const auto options = std::make_shared<Options>(app, named);
  return [options] { return run(*options); };
}

}  // namespace ptxgen::tool

#include "src/runtime/ptxas.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "ptxgen/environment.h"
#include "ptxgen/strings.h"

namespace ptxgen {
namespace {

namespace fs = std::filesystem;

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool is_executable(const std::string& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
}

// The folders searched when PTXGEN_PTXAS is not set; the last is where tools/bootstrap.sh puts what the
// machine lacks.
std::vector<std::string> search_folders() {
  std::vector<std::string> folders = absl::StrSplit(environment("PATH"), ':', absl::SkipEmpty());
  folders.push_back("/usr/local/cuda/bin");
  std::string cache = environment("XDG_CACHE_HOME");
  if (cache.empty() && !environment("HOME").empty()) cache = str_cat(environment("HOME"), "/.cache");
  if (!cache.empty()) folders.push_back(str_cat(cache, "/ptxgen/tools/bin"));
  return folders;
}

absl::StatusOr<std::string> find_path() {
  const std::string named = env::text(env::kPtxas);
  if (!named.empty()) {
    if (is_executable(named)) return named;
    return absl::NotFoundError(
        str_cat(env::kPtxas.name, "=", named, " is not an executable file; name a ptxas or unset it"));
  }
  const std::vector<std::string> folders = search_folders();
  for (const std::string& folder : folders) {
    std::string path = str_cat(folder, "/ptxas");
    if (is_executable(path)) return path;
  }
  return absl::NotFoundError(str_cat("no ptxas in ", absl::StrJoin(folders, ":"),
                                     "; run tools/bootstrap.sh or set ", env::kPtxas.name));
}

// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::error_code error;
    fs::path base = fs::temp_directory_path(error);
    std::string pattern = ((error ? fs::path("/tmp") : base) / "ptxgen-ptxas-XXXXXX").string();
    if (::mkdtemp(pattern.data()) != nullptr) {
      path_ = pattern;
    } else {
      status_ = absl::ErrnoToStatus(errno, str_cat("creating the temporary folder ", pattern));
    }
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const absl::Status& status() const { return status_; }
  std::string file(std::string_view name) const { return str_cat(path_, "/", name); }

 private:
  absl::Status status_;
  std::string path_;
};

absl::StatusOr<std::string> read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.is_open() || in.bad()) return absl::InternalError(str_cat("cannot read ", path));
  return text;
}

// Runs `arguments` ([0] is the program's path) with both outputs in the file `log`, and returns its exit
// status.
absl::StatusOr<int> run(std::vector<std::string> arguments, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int spawned = ::posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (spawned != 0) return absl::ErrnoToStatus(spawned, str_cat("starting ", arguments[0]));

  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, str_cat("waiting for ", arguments[0]));
  }
  if (WIFSIGNALED(status)) {
    return absl::InternalError(str_cat(arguments[0], " was ended by signal ", WTERMSIG(status)));
  }
  return WEXITSTATUS(status);
}

// Calls visit(part) for each part of `text` between two separators.
template <class Visit>
void for_each_part(std::string_view text, char separator, Visit visit) {
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    visit(text.substr(at, end - at));
    at = end + 1;
  }
}

// The log without what differs from run to run: the temporary path and the compile time.
std::string stable_log(std::string_view log, const std::string& ptx_path) {
  std::string stable;
  for_each_part(log, '\n', [&](std::string_view line) {
    if (!line.empty() && line.find("Compile time = ") == line.npos) stable.append(line).append("\n");
  });
  absl::StrReplaceAll({{ptx_path, "ptx"}}, &stable);
  return stable;
}

// Reads the number in a part such as "24 registers" of a log line.
void read_property(std::string_view part, PtxasEntry& entry) {
  constexpr std::pair<std::string_view, std::uint32_t PtxasEntry::*> kUnits[] = {
      {" registers", &PtxasEntry::registers},
      {" barriers", &PtxasEntry::barriers},
      {" bytes smem", &PtxasEntry::shared_bytes},
      {" bytes stack frame", &PtxasEntry::stack_bytes},
      {" bytes spill stores", &PtxasEntry::spill_store_bytes},
      {" bytes spill loads", &PtxasEntry::spill_load_bytes},
  };
  for (const auto& [unit, member] : kUnits) {
    if (!part.ends_with(unit)) continue;
    part.remove_suffix(unit.size());
    const std::string_view number = part.substr(part.rfind(' ') + 1);
    std::from_chars(number.data(), number.data() + number.size(), entry.*member);
  }
}

}  // namespace

const PtxasEntry* PtxasReport::find(std::string_view name) const {
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const PtxasEntry& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

bool PtxasReport::spills() const {
  return std::any_of(entries.begin(), entries.end(), [](const PtxasEntry& entry) { return entry.spills(); });
}

// An entry's lines are, in this order (CUDA 12 and 13):
//   ptxas info    : Compiling entry function 'NAME' for 'sm_90'
//   ptxas info    : Function properties for NAME
//       0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 8 registers, used 0 barriers, 1024 bytes smem
// A .func has "Function properties" of its own, which are no entry's.
std::vector<PtxasEntry> parse_ptxas_log(std::string_view log) {
  constexpr std::string_view kCompiling = "Compiling entry function '";
  constexpr std::string_view kProperties = "Function properties for ";
  std::vector<PtxasEntry> entries;
  bool in_entry = false;
  for_each_part(log, '\n', [&](std::string_view line) {
    const std::size_t compiling = line.find(kCompiling);
    const std::size_t properties = line.find(kProperties);
    if (compiling != line.npos) {
      const std::string_view rest = line.substr(compiling + kCompiling.size());
      entries.emplace_back().name = std::string(rest.substr(0, rest.find('\'')));
      in_entry = true;
    } else if (properties != line.npos) {
      in_entry = !entries.empty() && line.substr(properties + kProperties.size()) == entries.back().name;
    } else if (in_entry) {
      for_each_part(line, ',', [&](std::string_view part) { read_property(part, entries.back()); });
    }
  });
  return entries;
}

absl::StatusOr<Ptxas> Ptxas::find() {
  absl::StatusOr<std::string> path = find_path();
  if (!path.ok()) return path.status();
  Ptxas ptxas(*std::move(path));
  const TemporaryFolder folder;
  if (!folder.status().ok()) return folder.status();
  const std::string log = folder.file("version");
  const absl::StatusOr<int> exit = run({ptxas.path_, "--version"}, log);
  if (!exit.ok()) return exit.status();
  absl::StatusOr<std::string> version = read_file(log);
  if (!version.ok()) return version.status();
  if (*exit != 0 || !absl::StrContains(*version, "release")) {
    return absl::FailedPreconditionError(
        str_cat(ptxas.path_, " --version failed (exit status ", *exit, "), so it is no ptxas: ", *version));
  }
  ptxas.version_ = *std::move(version);
  return ptxas;
}

absl::StatusOr<PtxasReport> Ptxas::assemble(std::string_view ptx, Target target) const {
  const TemporaryFolder folder;
  if (!folder.status().ok()) return folder.status();
  const std::string input = folder.file("kernel.ptx");
  std::ofstream out(input, std::ios::binary);
  out << ptx;
  out.close();
  if (!out) return absl::ResourceExhaustedError(str_cat("cannot write ", input));

  const std::string log = folder.file("log"), output = folder.file("kernel.cubin");
  const absl::StatusOr<int> exit =
      run({path_, std::string(kFlags), str_cat("-arch=", target.to_string()), "-o", output, input}, log);
  if (!exit.ok()) return exit.status();
  absl::StatusOr<std::string> text = read_file(log);
  if (!text.ok()) return text.status();
  PtxasReport report;
  report.ok = *exit == 0;
  report.log = stable_log(*text, input);
  if (!report.ok) return report;
  report.entries = parse_ptxas_log(report.log);
  absl::StatusOr<std::string> cubin = read_file(output);
  if (!cubin.ok()) return cubin.status();
  report.cubin = *std::move(cubin);
  return report;
}

}  // namespace ptxgen

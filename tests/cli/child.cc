#include "tests/cli/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "tests/support/catch.h"

namespace ptxgen::testing {
namespace {

constexpr unsigned kSecondsAtMost = 300;  // a child that hangs is ended by SIGALRM

std::vector<std::string> merged(std::map<std::string, std::string> overrides, const std::string& cache) {
  overrides.emplace("PTXGEN_CACHE_DIR", cache);
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string name(text.substr(0, text.find('=')));
    const bool ours = name.starts_with("PTXGEN_") && name != "PTXGEN_PTXAS";
    if (!ours && overrides.count(name) == 0) result.emplace_back(text);
  }
  for (const auto& [name, value] : overrides) result.push_back(name + "=" + value);
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

}  // namespace

Finished Command::run(const Arguments& arguments) const {
  std::vector<std::string> texts = {PTXGEN_COMMAND};
  texts.insert(texts.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = merged(environment, (captured_.path() / "cache").string());
  const std::vector<char*> argv = pointers(texts), envp = pointers(variables);
  const std::string out = stdout_path.empty() ? (captured_.path() / "out").string() : stdout_path;
  const std::string err = (captured_.path() / "err").string();

  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {  // only calls that are safe between fork and exec
    const int in = ::open("/dev/null", O_RDONLY);
    const int to = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const int complaints = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    const bool ready = ::dup2(in, 0) >= 0 && ::dup2(to, 1) >= 0 && ::dup2(complaints, 2) >= 0 &&
                       ::chdir(folder_.path().c_str()) == 0;
    ::alarm(kSecondsAtMost);
    if (ready) ::execve(argv[0], argv.data(), envp.data());
    ::_exit(127);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(captured_.path() / "out").value_or(""),
          read_file(err).value_or("")};
}

nlohmann::json Command::run_json(Arguments arguments, int exit_status) const {
  arguments.push_back("--json");
  const Finished finished = run(arguments);
  INFO(finished.err);
  REQUIRE(finished.exit_status == exit_status);
  nlohmann::json parsed = nlohmann::json::parse(finished.out, nullptr, /*allow_exceptions=*/false);
  REQUIRE(!parsed.is_discarded());
  return parsed;
}

std::vector<std::string> Command::files() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder()))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace ptxgen::testing

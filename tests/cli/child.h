// The ptxgen command as a child process.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/files.h"

namespace ptxgen::testing {

struct Finished {
  int exit_status = -1;  // -1: ended by a signal
  std::string out, err;
};

// The command in a folder of its own. Its environment is this process's without ptxgen's variables, except
// for the ptxas to use; its cache directory is its own too unless `environment` names one; its device is the emulated one unless `environment` says otherwise.
class Command {
 public:
  using Arguments = std::vector<std::string>;

  std::map<std::string, std::string> environment = {{"PTXGEN_DEVICE", "emulator"}};
  std::string stdout_path = {};  // empty: captured

  Finished run(const Arguments& arguments) const;
  // The same with --json behind, parsed. Fails the test unless the exit status is the one given.
  nlohmann::json run_json(Arguments arguments, int exit_status = 0) const;

  const std::filesystem::path& folder() const { return folder_.path(); }
  // Names of what is in the folder.
  std::vector<std::string> files() const;

 private:
  ScratchFolder folder_, captured_;
};

}  // namespace ptxgen::testing

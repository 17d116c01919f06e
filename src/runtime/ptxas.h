// NVIDIA's assembler as a tool: what it says about a piece of PTX (registers, spills, messages). ptxgen needs
// none of this to compile or launch a kernel; `ptxgen explain`, PTXGEN_DUMP and the test suite ask where a
// ptxas is installed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "ptxgen/target.h"

namespace ptxgen {

// What ptxas -v reports about one entry function.
struct PtxasEntry {
  std::string name;
  std::uint32_t registers = 0;          // a thread
  std::uint32_t barriers = 0;           // named barriers a CTA
  std::uint32_t shared_bytes = 0;       // static, a CTA
  std::uint32_t stack_bytes = 0;        // local memory a thread, spills included
  std::uint32_t spill_store_bytes = 0;  // a thread
  std::uint32_t spill_load_bytes = 0;   // a thread

  bool spills() const { return spill_store_bytes != 0 || spill_load_bytes != 0; }
};

struct PtxasReport {
  bool ok = false;    // ptxas accepted the text
  std::string cubin;  // what it made of it
  std::string log;    // its messages; the text is called "ptx": "ptxas ptx, line 9; error : ..."
  std::vector<PtxasEntry> entries;  // in the order of the log; empty when it refused the text

  // The named entry; nullptr when the log has none of that name.
  const PtxasEntry* find(std::string_view name) const;

  // Whether any entry spills.
  bool spills() const;
};

// The entries that a log of `ptxas -v` describes.
std::vector<PtxasEntry> parse_ptxas_log(std::string_view log);

class Ptxas {
 public:
  // Flags of every assembly besides -arch and the files.
  static constexpr const char* kFlags = "-v";

  // The one that PTXGEN_PTXAS names, else the first in PATH, /usr/local/cuda/bin and the folder that
  // tools/bootstrap.sh fills. NotFound says where it looked; a PTXGEN_PTXAS that cannot be run is never
  // passed over.
  static absl::StatusOr<Ptxas> find();

  const std::string& path() const { return path_; }

  // The text of `ptxas --version`: identifies the build.
  const std::string& version() const { return version_; }

  // Assembles `ptx` for `target`. A text that ptxas refuses is a report with ok == false; an error is a ptxas
  // that could not be run or was killed. Uses a temporary folder of its own; any number of threads may call
  // it.
  absl::StatusOr<PtxasReport> assemble(std::string_view ptx, Target target) const;

 private:
  explicit Ptxas(std::string path) : path_(std::move(path)) {}

  std::string path_;
  std::string version_;
};

}  // namespace ptxgen

// Many processes on one cache directory, some of which are killed.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <new>

#include "tests/runtime/store_board.h"
#include "tests/runtime/stored.h"
#include "tests/support/catch.h"
#include "tests/support/files.h"
#include "tests/support/status.h"

namespace ptxgen {
namespace {

namespace fs = std::filesystem;
using testing::Board;
using testing::take;

pid_t start(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), PTXGEN_STORE_WORKER);
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(::posix_spawn(&child, argv[0], nullptr, nullptr, argv.data(), environ) == 0);
  return child;
}

int status_of(pid_t child) {
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace

TEST_CASE("sixteen processes compile a kernel once, though one is killed in each round", "[runtime][store]") {
  constexpr int kRounds = 50, kWorkers = 15;
  static_assert(kRounds <= testing::kMaxRounds);
  const testing::ScratchFolder scratch;
  const std::string folder = (scratch.path() / "cache").string(), path = (scratch.path() / "board").string();
  REQUIRE(testing::write_file(path, std::string(sizeof(Board), '\0')));
  const int file = ::open(path.c_str(), O_RDWR);
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  REQUIRE(memory != MAP_FAILED);
  Board& board = *new (memory) Board{};
  board.members = kWorkers + 1;

  std::vector<pid_t> workers;
  for (int i = 0; i < kWorkers; ++i)
    workers.push_back(start({"work", folder, path, std::to_string(kRounds)}));
  for (int round = 0; round < kRounds; ++round) {
    const int status =
        status_of(start({"die", folder, path, std::to_string(round), round % 2 == 0 ? "first" : "race"}));
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  }
  for (const pid_t worker : workers) CHECK(status_of(worker) == 0);
  for (int round = 0; round < kRounds; ++round) {
    INFO(round);
    CHECK(board.compiles[round] == 1);
  }

  CubinStore store({.directory = {.path = folder, .shared = false}, .max_bytes = 1 << 30});
  const auto entries = take(store.entries());
  CHECK(entries.size() == kRounds);
  for (const CubinStore::Entry& entry : entries) CHECK(entry.kernel.ok());
  // What the dead left: half a file each, which nobody reads and a sweep removes when it is old.
  std::size_t left = 0;
  for (const auto& entry : fs::directory_iterator(store.directory())) {
    if (entry.path().extension() != ".tmp") continue;
    ++left;
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  CHECK(left == kRounds);
  CHECK(take(store.sweep(1 << 30)).removed == kRounds);
  CHECK(take(store.entries()).size() == kRounds);
  ::munmap(memory, sizeof(Board));
  ::close(file);
}

}  // namespace ptxgen

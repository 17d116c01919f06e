// One of many processes that want the same kernels at once. Each round has a kernel of its own; behind a
// barrier all look for it, and who does not find it compiles it as KernelCache does. Exits with 0 when every
// round gave the right code.
//
//   ptxgen_store_worker work FOLDER BOARD ROUNDS     takes part in all rounds
//   ptxgen_store_worker die FOLDER BOARD ROUND HOW   takes part in one, and is killed half-way through
//   writing;
//                                                    HOW is "first" (it has the lock before the others come)
//                                                    or "race"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

#include "src/runtime/file_system.h"
#include "tests/runtime/store_board.h"
#include "tests/runtime/stored.h"

namespace {

using namespace ptxgen;
using testing::Board;
using testing::has;
using testing::keep;

class KilledWriting final : public internal::FileSystem {
 public:
  ssize_t write(int file, const void* data, std::size_t bytes) override {
    (void)FileSystem::write(file, data, bytes / 2);
    std::raise(SIGKILL);
    return 0;
  }
};

CubinStoreOptions in(const char* folder) {
  return {.directory = {.path = folder, .shared = false},
          .max_bytes = std::uint64_t{1} << 30,
          .lock_wait = std::chrono::seconds(60)};  // the machine may be busy
}

void meet(Board& board, int round) {
  ++board.arrived[round];
  while (board.arrived[round] < board.members) std::this_thread::yield();
}

StoredKernel compile(Board& board, int round) {
  ++board.compiles[round];
  std::this_thread::sleep_for(std::chrono::milliseconds(2));
  return testing::stored_kernel(static_cast<std::uint64_t>(round));
}

bool take_part(CubinStore& store, Board& board, int round) {
  const StoredKernel wanted = testing::stored_kernel(static_cast<std::uint64_t>(round));
  meet(board, round);
  if (has(store, wanted)) return true;
  const CubinStore::Lock lock = store.lock(wanted.key, wanted.ptx);
  const std::optional<Image> kept = store.find(wanted.key, wanted.ptx);
  if (kept.has_value()) return kept->bytes == wanted.image.bytes;
  const StoredKernel made = compile(board, round);
  return lock.held() && keep(store, made).ok() && has(store, wanted);
}

int die(CubinStore& store, Board& board, int round, bool first) {
  const StoredKernel kernel = testing::stored_kernel(static_cast<std::uint64_t>(round));
  CubinStore::Lock lock;
  if (first) lock = store.lock(kernel.key, kernel.ptx);
  meet(board, round);
  (void)keep(store, kernel);
  return 1;  // it should not have come so far
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  ::alarm(300);  // where another has not come to the barrier
  const int file = ::open(argv[3], O_RDWR);
  void* memory = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (file < 0 || memory == MAP_FAILED) return 2;
  Board& board = *static_cast<Board*>(memory);
  if (std::string_view(argv[1]) == "die") {
    KilledWriting files;
    CubinStore store(in(argv[2]), files);
    return die(store, board, std::atoi(argv[4]), std::string_view(argv[5]) == "first");
  }
  CubinStore store(in(argv[2]));
  bool right = store.is_open();
  for (int round = 0; round < std::atoi(argv[4]); ++round) right = take_part(store, board, round) && right;
  return right ? 0 : 1;
}

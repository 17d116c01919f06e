#include "src/runtime/isolate.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "ptxgen/environment.h"
#include "ptxgen/strings.h"
#include "src/runtime/entry.h"

namespace ptxgen::internal {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr const char* kHelper = "ptxgen-isolate";
constexpr std::string_view kError = "error ";

// Both ends of a connection; SIGPIPE is a matter of pipes, and of this process, and so is avoided.
struct Connection {
  int ours = -1, theirs = -1;
  Connection() {
    std::array<int, 2> ends = {-1, -1};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0)
      ours = ends[0], theirs = ends[1];
  }
  ~Connection() {
    close_theirs();
    if (ours >= 0) ::close(ours);
  }
  void close_theirs() {
    if (theirs >= 0) ::close(theirs);
    theirs = -1;
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
};

// Starts the program with the connection as its input and output and nothing else of this process's files.
// 0, or an error.
int start(std::vector<std::string> arguments, int connection, pid_t& child) {
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);

  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, connection, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, connection, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 34)
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
#endif
#endif
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  const int result = ::posix_spawn(&child, argv[0], &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return result;
}

// False where the other end has gone or the time is over.
bool wait_for(int connection, short event, Clock::time_point deadline) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd poll = {connection, event, 0};
    const int ready = ::poll(&poll, 1, static_cast<int>(std::min<std::int64_t>(left, 1000)));
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

void send_all(int connection, std::string_view text, Clock::time_point deadline) {
  while (!text.empty() && wait_for(connection, POLLOUT, deadline)) {
    const ssize_t sent = ::send(connection, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      text.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR && errno != EAGAIN) {
      break;  // it has died: its silence will say so
    }
  }
  ::shutdown(connection, SHUT_WR);
}

// All that comes until the other end closes; false when the time is over first.
bool receive_all(int connection, std::string& text, Clock::time_point deadline) {
  std::array<char, 65536> piece;
  while (wait_for(connection, POLLIN, deadline)) {
    const ssize_t got = ::recv(connection, piece.data(), piece.size(), 0);
    if (got > 0) text.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0 || (got < 0 && errno != EINTR)) return true;
  }
  return false;
}

// How the child ended, in words; it is ended where it has not by then. A process that ignores SIGCHLD or
// waits for all its children takes the status away.
std::string reap(pid_t child, Clock::time_point deadline) {
  int status = 0;
  while (true) {
    const pid_t result = ::waitpid(child, &status, WNOHANG);
    if (result == child) break;
    if (result < 0 && errno != EINTR) return "ended in an unknown way";
    if (Clock::now() > deadline) {
      ::kill(child, SIGKILL);
      while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
      return "did not end in time";
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (WIFSIGNALED(status))
    return str_cat("was ended by signal ", WTERMSIG(status), " (", ::strsignal(WTERMSIG(status)), ")");
  return str_cat("ended with exit status ", WEXITSTATUS(status));
}

absl::StatusOr<Image> read_result(std::string_view text, const DeviceProperties& device,
                                  const std::string& ptx) {
  if (text.starts_with(kError)) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    int code = 0;
    (void)absl::SimpleAtoi(absl::string_view(text.data() + kError.size(), end - kError.size()), &code);
    const std::string message(text.substr(std::min(end + 1, text.size())));
    if (code == static_cast<int>(absl::StatusCode::kDataLoss))  // the child's device, not ours
      return absl::InternalError(str_cat("in a process of its own: ", message));
    return absl::Status(static_cast<absl::StatusCode>(code), message);
  }
  absl::StatusOr<StoredKernel> made = decode_entry(text);
  if (!made.ok()) return made.status();
  KernelKey expected = KernelKey::of_device(device, made->key.codegen);
  expected.descriptor = made->key.descriptor;
  if (made->key != expected || made->ptx != ptx) {
    return absl::FailedPreconditionError(
        str_cat("the helper compiles for another device, driver or ptxgen: ", made->key.to_string(),
                " instead of ", expected.to_string()));
  }
  return std::move(made->image);
}

}  // namespace

absl::StatusOr<std::optional<std::string>> isolation_helper(std::optional<bool> wanted,
                                                            const std::string& path) {
  const std::string variable = env::text(env::kIsolate);
  const bool is_path = variable.find('/') != variable.npos;
  if (!wanted.has_value()) {
    if (!is_path && variable != "" && variable != "0" && variable != "1")
      return absl::InvalidArgumentError(
          str_cat(env::kIsolate.name, "=", variable, ": allowed is ", env::kIsolate.values));
    wanted = is_path || variable == "1";
  }
  if (!*wanted) return std::nullopt;
  std::vector<std::string> places;
  if (!path.empty()) {
    places = {path};
  } else if (is_path) {
    places = {variable};
  } else {
    std::error_code error;
    const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
    places = {(here / kHelper).string(), (here / ".." / "libexec" / "ptxgen" / kHelper).string(),
              str_cat(PTXGEN_LIBEXEC_DIR, "/", kHelper)};
  }
  std::string tried;
  for (const std::string& place : places) {
    if (::access(place.c_str(), X_OK) == 0) return place;
    str_append(&tried, tried.empty() ? "" : ", ", place);
  }
  return absl::NotFoundError(str_cat("kernels are to be compiled in a process of their own, and ", kHelper,
                                     " is not at ", tried, "; give its path in ", env::kIsolate.name,
                                     " or KernelCacheOptions::isolate_helper"));
}

absl::StatusOr<Image> compile_isolated(const std::string& helper, const DeviceProperties& device,
                                       const GeneratedKernel& kernel, std::chrono::milliseconds limit) {
  const Clock::time_point deadline = Clock::now() + limit;
  Connection connection;
  if (connection.ours < 0) return absl::ErrnoToStatus(errno, "compiling in a process of its own");
  pid_t child = 0;
  if (const int error =
          start({helper, str_cat(device.index), device.libcuda, kernel.entry}, connection.theirs, child);
      error != 0) {
    return absl::ErrnoToStatus(error, str_cat("compiling in a process of its own: starting ", helper));
  }
  connection.close_theirs();
  send_all(connection.ours, kernel.ptx, deadline);
  std::string text;
  const bool answered = receive_all(connection.ours, text, deadline);
  const std::string end = reap(child, answered ? Clock::now() + std::chrono::seconds(5) : deadline);
  absl::StatusOr<Image> image = read_result(text, device, kernel.ptx);
  if (!absl::IsDataLoss(image.status())) return image;
  return absl::InternalError(
      str_cat("compiling PTX in a process of its own, which ", end,
              "; this process and its device are unharmed. PTXGEN_DUMP shows the text"));
}

std::string encode_isolated(const KernelKey& key, const std::string& ptx,
                            const absl::StatusOr<Image>& image) {
  if (image.ok()) return encode_entry(key, ptx, *image);
  return str_cat(kError, static_cast<int>(image.status().code()), "\n", image.status().message());
}

}  // namespace ptxgen::internal

// parity-check for many short commands, each in a fork of a process that has loaded LibTorch: .02 s to the first line
// of run_all_commands, not .2. Standard input is a socket of whole messages (SOCK_SEQPACKET, tests/python/program.py):
// a command with the three files that its process reads and writes; the answer is an Ended.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "cli/all_commands.hpp"
#include "cli/program.hpp"

namespace {

constexpr int kSocket = STDIN_FILENO;
constexpr size_t kLongest = 1 << 18;  // bytes of a message

struct Ended {
  int64_t status;      // as waitpid gives it
  double cpu_seconds;  // user and system
};

struct Command {
  std::array<int, 3> files;        // its standard input, output, error
  std::vector<std::string> texts;  // folder, number of arguments, the arguments, the environment
};

std::optional<Command> next_command() {
  static std::array<char, kLongest> text;
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(Command::files))> space{};
  iovec part{text.data(), text.size()};
  msghdr message{};
  message.msg_iov = &part, message.msg_iovlen = 1;
  message.msg_control = space.data(), message.msg_controllen = space.size();
  const ssize_t size = ::recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  const cmsghdr* files = CMSG_FIRSTHDR(&message);
  if (size <= 0 || files == nullptr || files->cmsg_len != CMSG_LEN(sizeof(Command::files)) ||
      (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0)
    return std::nullopt;
  Command command{};
  std::memcpy(command.files.data(), CMSG_DATA(files), sizeof(Command::files));
  for (const char* at = text.data(); at < text.data() + size; at += command.texts.back().size() + 1)
    command.texts.emplace_back(at);
  return command;
}

[[noreturn]] void run(Command command) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // whoever ends the server ends the command
  for (int i = 0; i < 3; ++i) ::dup2(command.files[i], i);
  std::vector<std::string>& texts = command.texts;
  if (::chdir(texts[0].c_str()) != 0) ::_exit(126);
  const auto first = texts.begin() + 2, last = first + std::stol(texts[1]);
  ::clearenv();
  for (auto variable = last; variable != texts.end(); ++variable) ::putenv(variable->data());  // never given back
  parity::cli::run_all_commands({first, last});
}

}  // namespace

int main(int argc, char** /*argv*/) {
  if (argc == 1) {  // LibTorch is loaded by now: once more, with the settings that `parity-check` gives it
    parity::cli::set_environment_of_libtorch();
    ::execl("/proc/self/exe", "parity-check-preloaded", "serve", nullptr);
    return 2;
  }
  while (auto command = next_command()) {
    const pid_t child = ::fork();
    if (child == 0) run(std::move(*command));
    for (const int file : command->files) ::close(file);
    int status = -1;
    rusage used{};
    if (child < 0 || ::wait4(child, &status, 0, &used) != child) return 2;
    const auto seconds = [](const timeval& t) {
      return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
    };
    const Ended ended{status, seconds(used.ru_utime) + seconds(used.ru_stime)};
    if (::send(kSocket, &ended, sizeof ended, MSG_NOSIGNAL) != sizeof ended) return 2;
  }
}

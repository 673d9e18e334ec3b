#include "report/gnuplot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "report/sink.hpp"

namespace parity {

std::string run_gnuplot(const std::filesystem::path& folder, const std::string& script) {
  std::string program = "gnuplot", defaults = "-d", file = script;
  char* arguments[] = {program.data(), defaults.data(), file.data(), nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addchdir_np(&actions, folder.c_str());
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const int error = ::posix_spawnp(&child, "gnuplot", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0)
    return fmt::format("gnuplot could not be started ({}): install gnuplot-nox for the plots", std::strerror(error));
  int status = 0;
  while (::waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return "gnuplot could not be waited for";
  return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "" : fmt::format("gnuplot failed (status {})", status);
}

std::string draw_gnuplot(const std::filesystem::path& folder, const std::string& file,
                         const std::function<std::string(const std::string& output)>& script) {
  const std::string commands = file + ".gnuplot", picture = file + ".part";
  write_file(folder / commands, script(picture));
  std::string problem = run_gnuplot(folder, commands);
  std::error_code error, ignored;
  std::filesystem::remove(folder / commands, ignored);
  if (problem.empty()) std::filesystem::rename(folder / picture, folder / file, error);
  if (error) problem = fmt::format("gnuplot wrote no {}", file);
  std::filesystem::remove(folder / picture, ignored);
  return problem;
}

}  // namespace parity

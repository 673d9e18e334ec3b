#include "cli/command.hpp"

#include <fmt/format.h>

#include <unistd.h>
#include <cmath>

#include <cstdlib>
#include <ctime>

#include "core/beside.hpp"
#include "core/error.hpp"
#include "places.hpp"
#include "report/sink.hpp"

namespace parity::cli {

void add_common(CLI::App& command, Common& common) {
  command.add_option("--json", common.json, "Write the machine-readable result to FILE")->type_name("FILE");
  command.add_flag("--quiet,-q", common.quiet, "Print nothing but errors");
  command.add_option("--threads", common.threads, "Threads of LibTorch (default: as the reference was recorded)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
}

void write_result(const std::filesystem::path& file, const nlohmann::json& result) {
  write_file(file, result.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

CLI::Validator existing_file() {
  const auto check = [](const std::string& name) -> std::string {
    std::error_code problem;
    if (std::filesystem::is_directory(name, problem)) throw Error(fmt::format("{}: is a folder, not a file", name));
    if (!std::filesystem::exists(name, problem)) throw Error(fmt::format("{}: no such file", name));
    return "";
  };
  return CLI::Validator(check, "FILE");
}

namespace {

std::string require_there(const std::string& name) {
  std::error_code problem;
  if (!std::filesystem::exists(name, problem)) throw Error(fmt::format("{}: no such file or folder", name));
  return "";
}

}  // namespace

CLI::Validator existing_path() { return CLI::Validator(require_there, "PATH"); }

CLI::Validator existing_places() {
  const auto check = [](const std::string& name) -> std::string {
    const bool pattern = std::filesystem::path(name).filename().string().find_first_of("*?") != std::string::npos;
    return pattern ? "" : require_there(name);
  };
  return CLI::Validator(check, "PATH");
}

CLI::Validator number_from(double least) {
  static constexpr double kMost = 1e6;
  const auto check = [least](const std::string& text) -> std::string {
    double number = NAN;
    if (CLI::detail::lexical_cast(text, number) && number >= least && number <= kMost) return "";
    return fmt::format("'{}' is not a number from {} to {}", text, least, kMost);
  };
  return CLI::Validator(check, "");
}

std::filesystem::path embedded_dumps_folder() {
  if (const char* folder = std::getenv("PARITY_REFERENCE_DUMPS")) return folder;
  return beside_program(std::filesystem::path(PARITY_SOURCE_DIR) / "reference_dumps");
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", std::localtime(&now))};
}

bool want_colour() {
  const char* no_colour = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && (no_colour == nullptr || *no_colour == '\0');
}

}  // namespace parity::cli

// parity-check selftest: pairs with a known answer, ours beside the peers' rules.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/progress.hpp"
#include "report/sink.hpp"
#include "selftest/run.hpp"
#include "selftest/show.hpp"

namespace parity::cli {
namespace {

struct SelftestOptions {
  Common common;
  std::string suite, only = "all";
};

int selftest(const SelftestOptions& options, const std::string& command_line) {
  const std::filesystem::path folder =
      options.suite.empty() ? embedded_dumps_folder() / "selftest" : std::filesystem::path(options.suite);
  const SelftestSuite suite = read_suite(folder, options.only);
  SelftestResult result;
  {
    Progress progress(std::ssize(suite.pairs), options.common.quiet);
    result = run_selftest(suite, options.common.threads, [&](const std::string& file) { progress.step(file); });
  }
  if (!options.common.json.empty()) {
    nlohmann::json json = selftest_json(result);
    json["command"] = command_line;
    json["machine"] = this_machine_json();
    write_result(options.common.json, json);
  }
  if (!options.common.quiet) print("{}", Assembled{selftest_text(result)});
  return good_enough(total(result)) ? 0 : 1;
}

}  // namespace

void add_selftest(CLI::App& app, Action& action, const std::string& command_line) {
  auto options = std::make_shared<SelftestOptions>();
  CLI::App* command = app.add_subcommand(
      "selftest", "Seeded faults and honest rounding changes: recall, false alarms, and the peers' rules beside ours");
  command->add_option("--suite", options->suite, "Folder with MANIFEST.json (default: the embedded pairs)")
      ->type_name("DIR");
  command->add_option("--only", options->only, "Pairs to run: 'all', or globs on file names, comma-separated")
      ->type_name("GLOB");
  add_common(*command, options->common);
  command->callback([options, &action, command_line] {
    action = [options, command_line] { return selftest(*options, command_line); };
  });
}

}  // namespace parity::cli

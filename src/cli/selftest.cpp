// parity-check selftest: pairs with a known answer, ours beside the peers' rules.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/print.hpp"
#include "core/progress.hpp"
#include "report/sink.hpp"
#include "selftest/run.hpp"
#include "selftest/sample.hpp"
#include "selftest/score.hpp"
#include "selftest/show.hpp"

namespace parity::cli {
namespace {

struct SelftestOptions {
  Common common;
  std::string suite, only = "all", against, markdown;
  int sample = 0;
  bool leave_out = false;
};

SelftestSuite chosen_suite(const SelftestOptions& options) {
  const std::filesystem::path folder =
      options.suite.empty() ? embedded_dumps_folder() / "selftest" : std::filesystem::path(options.suite);
  SelftestSuite suite = read_suite(folder, options.only);
  return options.sample > 0 ? sample_of(std::move(suite), options.sample) : suite;
}

void write_results(const SelftestOptions& options, const SelftestResult& result, const OutOfSample* out,
                   const std::vector<std::string>& lost, const std::string& command_line) {
  if (!options.common.json.empty()) {
    nlohmann::json json = selftest_json(result, out);
    json["command"] = command_line;
    json["machine"] = this_machine_json();
    if (!options.against.empty()) json["lost"] = lost;
    write_result(options.common.json, json);
  }
  if (!options.markdown.empty()) write_file(options.markdown, selftest_markdown(result, out));
  if (options.common.quiet) return;
  print("{}", Assembled{selftest_text(result, out)});
  for (const std::string& line : lost) print("{}\n", line);
}

int selftest(const SelftestOptions& options, const std::string& command_line) {
  const SelftestSuite suite = chosen_suite(options);
  const Score score = options.against.empty() ? Score() : read_score(options.against);
  SelftestResult result;
  std::optional<OutOfSample> out;
  {
    Progress progress(std::ssize(suite.pairs) * (options.leave_out ? 2 : 1), options.common.quiet);
    const SelftestRun run{options.common.threads, [&](const std::string& file) { progress.step(file); }};
    result = run_selftest(suite, run);
    if (options.leave_out) out = run_out_of_sample(suite, run, result);
  }
  const std::vector<std::string> lost = options.against.empty() ? std::vector<std::string>() : losses(result, score);
  write_results(options, result, out ? &*out : nullptr, lost, command_line);
  return good_enough(total(result)) && lost.empty() ? 0 : 1;
}

}  // namespace

void add_selftest(CLI::App& app, Action& action, const std::string& command_line) {
  auto options = std::make_shared<SelftestOptions>();
  CLI::App* command = app.add_subcommand(
      "selftest", "Seeded faults and benign changes: recall, false alarms, and the peers' rules beside ours");
  command->add_option("--suite", options->suite, "Folder with MANIFEST.json (default: the embedded pairs)")
      ->type_name("DIR");
  command->add_option("--only", options->only, "Pairs to run: 'all', or globs on file names, comma-separated")
      ->type_name("GLOB");
  command->add_option("--sample", options->sample, "Run N of the faults, of each family, dtype and kind its share")
      ->type_name("N")
      ->check(number_from(1));
  command->add_option("--against", options->against, "Fail for what is worse than in this result (selftest --json)")
      ->type_name("FILE");
  command->add_flag("--leave-one-family-out", options->leave_out,
                    "Judge each family again under limits fitted without it");
  command->add_option("--markdown", options->markdown, "Write the tables as Markdown")->type_name("FILE");
  add_common(*command, options->common);
  command->callback([options, &action, command_line] {
    action = [options, command_line] { return selftest(*options, command_line); };
  });
}

}  // namespace parity::cli

// parity-check bench compare: all statistics of a pair of tensors, beside reading the two.
#include <ATen/Parallel.h>
#include <fmt/format.h>

#include "bench/compare.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "report/sink.hpp"
#include "trace/device.hpp"

namespace parity::cli {
namespace {

struct CompareCommand {
  Common common;
  CompareBenchOptions bench;
  std::string device = "cpu";
};

nlohmann::json to_json(const CompareBenchRow& row) {
  return {{"reference", row.reference},
          {"candidate", row.candidate},
          {"elements", row.elements},
          {"bytes", row.bytes},
          {"reading_seconds", row.reading},
          {"sums_seconds", row.sums},
          {"statistics_seconds", row.statistics},
          {"torch_isclose_seconds", row.torch_close}};
}

void print_rows(const std::vector<CompareBenchRow>& rows) {
  print(
      "{} threads; GB/s over both sides, in brackets the share of reading them\n"
      "{:<11} {:>12} {:>9} {:>17} {:>17} {:>17}\n",
      at::get_num_threads(), "dtypes", "elements", "reading", "sums", "all statistics", "isclose().all()");
  for (const auto& row : rows) {
    const auto rate = [&](double seconds) {
      return fmt::format("{:.2f} ({:.3f})", static_cast<double>(row.bytes) / seconds / 1e9, row.reading / seconds);
    };
    print("{:<11} {:>12} {:>9.2f} {:>17} {:>17} {:>17}\n",
          row.reference == row.candidate ? row.reference : row.reference + "/" + row.candidate, row.elements,
          static_cast<double>(row.bytes) / row.reading / 1e9, rate(row.sums), rate(row.statistics),
          rate(row.torch_close));
  }
}

int run_bench_compare(CompareCommand command) {
  command.bench.device = usable_device(command.device);
  set_threads(command.common, nullptr);
  const auto rows = [&] {
    ShareBar bar("measuring", command.common.quiet);
    command.bench.progress = std::ref(bar);
    return bench_compare(command.bench);
  }();
  if (!command.common.quiet) print_rows(rows);
  if (command.common.json.empty()) return 0;
  nlohmann::json json{{"name", "compare"},
                      {"device", command.device},
                      {"threads", at::get_num_threads()},
                      {"rows", nlohmann::json::array()}};
  for (const auto& row : rows) json["rows"].push_back(to_json(row));
  write_result(command.common.json, json);
  return 0;
}

}  // namespace

void add_bench_compare(CLI::App& bench, Action& action) {
  auto command = std::make_shared<CompareCommand>();
  CLI::App* compare = bench.add_subcommand(
      "compare", "All statistics of two tensors in memory, beside reading both and beside LibTorch's isclose");
  const auto dtype = CLI::IsMember({"bf16", "fp16", "fp32", "fp64"});
  compare->add_option("--dtypes", command->bench.dtypes, "Of the references (default: fp32,bf16)")
      ->delimiter(',')
      ->check(dtype);
  compare->add_option("--candidate", command->bench.candidate, "Dtype of the candidates (default: as the reference)")
      ->check(dtype);
  compare->add_option("--bytes", command->bench.bytes, "Of each reference (default: 1 KiB, 64 KiB, 4 MiB, 256 MiB)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
  compare->add_option("--repeats", command->bench.repeats, "Turns of which the fastest counts")
      ->check(number_from(1))
      ->capture_default_str();
  compare->add_option("--device", command->device, "Where both tensors lie: cpu, cuda or cuda:N")
      ->capture_default_str()
      ->type_name("DEVICE");
  add_common(*compare, command->common);
  compare->callback([command, &action] { action = [command] { return run_bench_compare(*command); }; });
}

}  // namespace parity::cli

// parity-check replay: an extract (or a whole recording) run again, beside what was recorded and what the port had.
#include <fmt/format.h>

#include "cli/command.hpp"
#include "cli/device.hpp"
#include "cli/print.hpp"
#include "cli/snippet.hpp"
#include "core/error.hpp"
#include "core/named.hpp"
#include "jobs/repro.hpp"
#include "report/json_values.hpp"
#include "report/sink.hpp"
#include "trace/device.hpp"
#include "trace/extract.hpp"

namespace parity::cli {
namespace {

struct ReproOptions {
  Common common;
  std::string file, dtype = "recorded", device = "cpu", snippet;
};

Precision precision_of(const std::string& name) {
  return name == "fp64" ? Precision::fp64 : name == "fp32" ? Precision::fp32 : Precision::recorded;
}

nlohmann::json row_json(const ReproRow& row) {
  return {{"path", row.path},
          {"call", row.call},
          {"kind", row.kind},
          {"dtype", dtype_name(row.dtype)},
          {"shape", row.shape},
          {"result", row.result},
          {"bitwise_equal_share", value(row.stats.bitwise_equal_share)},
          {"rel_l2", value(row.stats.rel_l2)},
          {"max_abs", value(row.stats.max_abs)},
          {"limit", row.limit},
          {"reproduced", row.reproduced}};
}

nlohmann::json to_json(const Repro& repro, const ReproOptions& options, int status) {
  nlohmann::json json{{"command", "replay"},
                      {"file", options.file},
                      {"dtype", options.dtype},
                      {"same_kernels", repro.same_kernels},
                      {"executed", repro.executed},
                      {"reproduced", repro.reproduced},
                      {"opaque", repro.opaque},
                      {"status", status},
                      {"boundaries", nlohmann::json::array()},
                      {"port", nlohmann::json::array()}};
  for (const ReproRow& row : repro.rows) json["boundaries"].push_back(row_json(row));
  for (const PortRow& row : repro.port)
    json["port"].push_back({{"path", row.path},
                            {"own_inputs", row.own_inputs},
                            {"bitwise_equal_share", value(row.stats.bitwise_equal_share)},
                            {"rel_l2", value(row.stats.rel_l2)},
                            {"ratio", value(row.oracle.ratio)},
                            {"correlation", value(row.oracle.correlation)}});
  return json;
}

std::string text(const std::optional<double>& value, const char* format = "{:.3g}") {
  return value ? fmt::format(fmt::runtime(format), *value) : "-";
}

std::string share(const Stats& stats) {
  return stats.bitwise_equal_share ? fmt::format("{:.2f} %", 100 * *stats.bitwise_equal_share) : "-";
}

void print_rows(const Repro& repro) {
  print("{:48} {:22} {:9} {:>10} {:>11} {:>10}\n", "boundary", "kind", "dtype", "bits equal", "relative L2", "limit");
  for (const ReproRow& row : repro.rows) {
    const std::string path = row.path.empty() ? "(result)" : row.path;
    print("{:48} {:22} {:9} {:>10} {:>11} {:>10}{}{}\n",
          row.call == 0 ? path : fmt::format("{} (call {})", path, row.call), row.kind, short_dtype_name(row.dtype),
          share(row.stats), text(row.stats.rel_l2), text(row.limit), row.result ? "  result" : "",
          row.reproduced ? "" : "  DIFFERS");
  }
  for (const PortRow& row : repro.port)
    print("port, {}: R {}, correlation {}, relative L2 {}, {} of the bits equal ({})\n",
          row.path.empty() ? "(result)" : row.path, text(row.oracle.ratio), text(row.oracle.correlation),
          text(row.stats.rel_l2), share(row.stats),
          row.own_inputs ? "the program ran on the port's own inputs" : "on the reference's inputs");
}

std::string conclusion(const Repro& repro, const ReproOptions& options) {
  if (!repro.executed) return "nothing was executed: every op in it is opaque, its stored results were taken";
  const bool bits = options.dtype == "recorded" && repro.same_kernels;
  if (!repro.reproduced)
    return bits ? "the recorded result is NOT reproduced, though the kernels are those of the recording"
                : "the recorded result is NOT reproduced: it lies further away than other valid arithmetic does";
  if (bits) return "the recorded result is reproduced bitwise";
  return fmt::format("the recorded result is reproduced within what other valid arithmetic differs by ({})",
                     options.dtype == "recorded" ? "another machine or thread count: bitwise equality is not required"
                                                 : "run in " + options.dtype);
}

struct Replayed {
  Repro repro;
  std::string snippet;
  bool is_extract;
};

Replayed replayed(const ReproOptions& options) {
  const Dump dump(options.file);
  set_threads(options.common, &dump);
  const Program program = load_program(dump);
  if (program.ops.empty())
    throw Error(
        fmt::format("{}: holds no program that could be run; make one with parity-check extract", options.file));
  ShareBar bar("replaying", options.common.quiet);
  Repro repro = run_again(dump, program, precision_of(options.dtype), std::ref(bar));
  std::string snippet = test_snippet(dump, program, repro);
  return {std::move(repro), std::move(snippet), dump.provenance().contains("extracted")};
}

int replay_command(const ReproOptions& options) {
  const ReplayDevice there(usable_device(options.device));
  const auto [repro, snippet, is_extract] = named({options.file}, [&] { return replayed(options); });
  const int status = !repro.reproduced ? 1 : repro.executed ? 0 : 3;
  if (!options.common.json.empty()) write_result(options.common.json, to_json(repro, options, status));
  if (!options.snippet.empty()) write_file(options.snippet, snippet);
  if (options.common.quiet) return status;
  print_rows(repro);
  for (const std::string& op : repro.opaque) print("taken from the recording, not run: {}\n", op);
  print("{}\n", conclusion(repro, options));
  if (options.snippet.empty() && is_extract)
    print("\nA test for the port (--snippet FILE writes it):\n\n{}", Assembled{snippet});
  return status;
}

}  // namespace

void add_replay(CLI::App& app, Action& action) {
  auto options = std::make_shared<ReproOptions>();
  CLI::App* command =
      app.add_subcommand("replay", "Run an extract again: is its recorded result reproduced, how far is the port?");
  command->add_option("FILE", options->file, "The extract, or any PyTorch recording")
      ->required()
      ->check(existing_file());
  command->add_option("--dtype", options->dtype, "Arithmetic: as recorded, or every float raised")
      ->check(CLI::IsMember({"recorded", "fp32", "fp64"}))
      ->capture_default_str();
  add_device(*command, options->device);
  command->add_option("--snippet", options->snippet, "Write a C++ test of the port's function to FILE")
      ->type_name("FILE");
  add_common(*command, options->common);
  command->callback([options, &action] { action = [options] { return replay_command(*options); }; });
}

}  // namespace parity::cli

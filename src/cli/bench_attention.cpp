// parity-check bench attention: memory and time of self-attention at a video model's sizes.
#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "bench/attention.hpp"
#include "cli/command.hpp"
#include "cli/print.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

struct AttentionCommand {
  Common common;
  std::string markdown;
  AttentionBenchOptions bench;
};

constexpr double kGigabyte = 1e9;

// What the JAX port's report says (its own machine, all of a generation's memory; mission row 1b).
struct Published {
  int frames;
  const char *standard, *chunked, *flash;
};
constexpr std::array kPublished{Published{9, "4 GB", "4 GB", "3 GB"},
                                Published{17, "out of memory (9.3 GB)", "6 GB", "5 GB"},
                                Published{57, "out of memory (41.9 GB)", "10 GB", "8 GB"}};

nlohmann::json to_json(const AttentionBenchRow& row) {
  const auto measured = [&row](double value) { return row.heads_run > 0 ? nlohmann::json(value) : nlohmann::json(); };
  return {{"frames", row.frames},
          {"tokens", row.tokens},
          {"variant", row.variant},
          {"dtype", row.dtype},
          {"heads_run", row.heads_run},
          {"first_seconds", measured(row.timing.first)},
          {"run_seconds", row.timing.seconds},
          {"seconds", measured(row.seconds)},
          {"peak_bytes", row.heads_run > 0 ? nlohmann::json(row.peak_bytes) : nlohmann::json()},
          {"computed_bytes", row.computed_bytes},
          {"computed_bytes_of_all_heads", row.computed_bytes_of_all},
          {"product_share", measured(row.product_share)},
          {"rel_l2", measured(row.error)}};
}

nlohmann::json to_json(const AttentionBench& b, const AttentionBenchOptions& options) {
  nlohmann::json out{{"name", "attention"},
                     {"threads", at::get_num_threads()},
                     {"height", options.height},
                     {"width", options.width},
                     {"heads", options.heads},
                     {"head_width", options.head_width},
                     {"repeats", options.repeats},
                     {"product_rates", nlohmann::json::object()},
                     {"rows", nlohmann::json::array()},
                     {"published", nlohmann::json::array()}};
  for (size_t i = 0; i < options.dtypes.size(); ++i) out["product_rates"][options.dtypes[i]] = b.product_rates[i];
  for (const AttentionBenchRow& row : b.rows) out["rows"].push_back(to_json(row));
  for (const Published& p : kPublished)
    out["published"].push_back(
        {{"frames", p.frames}, {"standard", p.standard}, {"chunked", p.chunked}, {"flash", p.flash}});
  return out;
}

std::vector<std::string> cells(const AttentionBenchRow& row, int64_t heads) {
  const auto giga = [](int64_t bytes) { return fmt::format("{:.2f}", static_cast<double>(bytes) / kGigabyte); };
  std::vector<std::string> out{std::to_string(row.frames), std::to_string(row.tokens), row.dtype, row.variant};
  const std::string computed = giga(row.computed_bytes_of_all);
  if (row.heads_run == 0) {
    out.insert(out.end(), {"too large", "not run", computed, "not run", "not run"});
    return out;
  }
  const bool part = row.heads_run < heads;
  out.push_back(part ? fmt::format("{} of {}", row.heads_run, heads) : "all");
  out.push_back(fmt::format("{:.3f}{}", row.seconds, part ? " (in proportion)" : ""));
  out.push_back(computed);
  out.push_back(fmt::format("{} of {}", giga(row.peak_bytes), giga(row.computed_bytes)));
  out.push_back(fmt::format("{:.2f}", row.product_share));
  out.push_back(fmt::format("{:.1e}", row.error));
  return out;
}

constexpr std::array kColumns{"frames",
                              "tokens",
                              "dtype",
                              "variant",
                              "heads run",
                              "seconds",
                              "GB computed, all heads",
                              "GB grown of computed, heads run",
                              "of the products' rate",
                              "rel L2"};

std::string markdown_of(const AttentionBench& b, const AttentionBenchOptions& options) {
  std::string out = fmt::format(
      "# Self-attention, {} heads of {}, {}x{}\n\n{} threads; {}; medians of {} after one that is not counted, the "
      "variants taking turns. What "
      "does not fit half of the free memory, or takes longer than asked, is run with fewer heads.\n\n",
      options.heads, options.head_width, options.height, options.width, at::get_num_threads(),
      fmt::join(options.dtypes, ", "), options.repeats);
  out += fmt::format("| {} |\n|{}\n", fmt::join(kColumns, " | "), [] {
    std::string rule;
    for (size_t i = 0; i < kColumns.size(); ++i) rule += "---|";
    return rule;
  }());
  for (const AttentionBenchRow& row : b.rows)
    out += fmt::format("| {} |\n", fmt::join(cells(row, options.heads), " | "));
  out +=
      "\nPublished for a JAX port, whole generations on another machine:\n\n| frames | standard | chunked, 256 a chunk "
      "| flash |\n|---|---|---|---|\n";
  for (const Published& p : kPublished)
    out += fmt::format("| {} | {} | {} | {} |\n", p.frames, p.standard, p.chunked, p.flash);
  return out;
}

void print_rows(const AttentionBench& b, const AttentionBenchOptions& options) {
  for (size_t i = 0; i < options.dtypes.size(); ++i)
    print("{} products of 2048 x 2048: {:.0f} G operations a second, {} threads\n", options.dtypes[i],
          b.product_rates[i] / kGigabyte, at::get_num_threads());
  print("{:>6} {:>7} {:<5} {:<7} {:>9} {:>24} {:>9} {:>15} {:>6} {:>9}\n", "frames", "tokens", "dtype", "variant",
        "heads run", "seconds, all heads", "GB comp.", "GB grown of", "rate", "rel L2");
  for (const AttentionBenchRow& row : b.rows) {
    auto c = cells(row, options.heads);
    c.resize(kColumns.size());
    print("{:>6} {:>7} {:<5} {:<7} {:>9} {:>24} {:>9} {:>15} {:>6} {:>9}\n", c[0], c[1], c[2], c[3], c[4], c[5], c[6],
          c[7], c[8], c[9]);
  }
}

int run_bench_attention(AttentionCommand command) {
  set_threads(command.common, nullptr);
  const AttentionBench b = [&] {
    ShareBar bar("running", command.common.quiet);
    command.bench.progress = std::ref(bar);
    return bench_attention(command.bench);
  }();
  if (!command.common.quiet) print_rows(b, command.bench);
  if (!command.common.json.empty()) write_result(command.common.json, to_json(b, command.bench));
  if (!command.markdown.empty()) write_file(command.markdown, markdown_of(b, command.bench));
  return 0;
}

}  // namespace

void add_bench_attention(CLI::App& bench, Action& action) {
  auto command = std::make_shared<AttentionCommand>();
  CLI::App* attention = bench.add_subcommand(
      "attention",
      "Self-attention at a video model's sizes: scores in memory, in tiles by our kernel, LibTorch's fused");
  const auto count = [attention](const char* name, auto& value, const char* help) {
    return attention->add_option(name, value, help)->check(number_from(1))->capture_default_str();
  };
  count("--frames", command->bench.frames, "Of video")->delimiter(',');
  count("--height", command->bench.height, "Of a frame, pixels");
  count("--width", command->bench.width, "Of a frame, pixels");
  count("--heads", command->bench.heads, "Heads");
  count("--head-width", command->bench.head_width, "Elements of a head");
  attention->add_option("--dtype", command->bench.dtypes, "bf16, fp32, or both")
      ->delimiter(',')
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  count("--repeats", command->bench.repeats, "Runs after the first, which is not counted");
  count("--most-seconds", command->bench.most, "A run may take; of what takes longer fewer heads are run");
  attention->add_option("--markdown", command->markdown, "Write the table there")->type_name("FILE");
  add_common(*attention, command->common);
  attention->callback([command, &action] { action = [command] { return run_bench_attention(*command); }; });
}

}  // namespace parity::cli

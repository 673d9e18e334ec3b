// What the subcommands share: the common options and how a command is handed to main.
#pragma once
#include <CLI/CLI.hpp>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "dump/dump.hpp"

namespace parity::cli {

struct Common {
  std::string json;    // --json FILE
  bool quiet = false;  // --quiet
  int threads = 0;     // --threads N; 0: as recorded, or LibTorch's default
};

/// Adds --json, --quiet and --threads to a subcommand.
void add_common(CLI::App& command, Common& common);

/// LibTorch's threads: those requested, else as `recording` was made (null, or not known there: LibTorch's default).
void set_threads(const Common& common, const Dump* recording);

/// Set by the chosen subcommand's callback; returns the exit status (design 1.2).
using Action = std::function<int()>;

/// One subcommand a file: `add_x` declares options and sets `action` when chosen.
void add_run(CLI::App& app, Action& action, const std::string& command_line);
void add_compare(CLI::App& app, Action& action, const std::string& command_line);
void add_bench(CLI::App& app, Action& action);
void add_bench_attention(CLI::App& bench, Action& action);
void add_bench_vae(CLI::App& bench, Action& action);
void add_bench_compare(CLI::App& bench, Action& action);
void add_bench_gpt2(CLI::App& bench, Action& action);
void add_bench_gpt_oss(CLI::App& bench, Action& action);
void add_bench_video(CLI::App& bench, Action& action);
void add_inspect(CLI::App& app, Action& action);
void add_video(CLI::App& app, Action& action, const std::string& command_line);
void add_selftest(CLI::App& app, Action& action, const std::string& command_line);
void add_extract(CLI::App& app, Action& action);
void add_replay(CLI::App& app, Action& action);
void add_doctor(CLI::App& app, Action& action);
void add_gate(CLI::App& app, Action& action);
void add_generate(CLI::App& app, Action& action);
void add_export(CLI::App& app, Action& action);
void add_watch(CLI::App& app, Action& action, const std::string& command_line);
void add_weights(CLI::App& app, Action& action, const std::string& command_line);

/// Where the embedded reference dumps lie: $PARITY_REFERENCE_DUMPS, else beside the sources this was built from.
std::filesystem::path embedded_dumps_folder();

/// Writes a machine-readable result; what is not UTF-8 in it (a file's name) is replaced. Throws Error when it cannot.
void write_result(const std::filesystem::path& file, const nlohmann::json& result);

/// For CLI11's `check`: a file, or a file or folder, that is there. Throws Error itself, so that the message is ours.
CLI::Validator existing_file();
CLI::Validator existing_path();
/// The same, or a pattern with * or ? in its last part, which may stand for several files.
CLI::Validator existing_places();
/// A number of at least that, and no more than a million: CLI::Range lets NaN through.
CLI::Validator number_from(double least);

/// Local date and time for a report's head; the machine for its JSON.
std::string now_text();
nlohmann::json this_machine_json();

/// Colour on standard output: a terminal, and NO_COLOR not set.
bool want_colour();

}  // namespace parity::cli

// What `compare`, `paths` and `blame` are told on the command line.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "cli/attachments.hpp"
#include "cli/command.hpp"
#include "jobs/port_job.hpp"

namespace parity::cli {

struct CompareOptions {
  Common common;
  Attachments attachments;
  std::string reference, candidate, map, inputs, layer = "all", device = "cpu", out, html, thresholds, save_map;
  std::vector<std::string> accepted, exports;
  bool diagnose = true, live = false;  // live: the candidate is a running port
  bool resume = false;                 // go on from what an interrupted comparison finished
  bool digest = true;                  // SHA-256 of both sides
  bool handed_over = false;            // finished work is kept and shared (finished_work.hpp)
  std::optional<double> max_free;
  double budget_memory = 0, budget_time = VariantBudget{}.replays;
};

/// Throws Error where --save-map would overwrite what --map reads: a map that was filled in by hand is not lost.
void check_save_map(const CompareOptions& options);

/// Those of --thresholds, with --accept-path.
Thresholds limits_of(const CompareOptions& options);

/// The same comparison of this row alone: what decides it, by pairing or by limits, goes along.
std::string rerun_of(const OpResult& row, const CompareOptions& options);

/// All but those of `compare` alone.
void add_compare_options(CLI::App& command, CompareOptions& options, bool candidate_required);
void add_compare_whole(CLI::App& command, CompareOptions& options);

}  // namespace parity::cli

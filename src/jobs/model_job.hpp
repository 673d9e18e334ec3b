// The main job: a re-implemented model next to the recording of the real one, op by op, under each precision.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "jobs/take_rules.hpp"
#include "models/model.hpp"
#include "trace/program.hpp"

namespace parity {

struct MainJobOptions {
  std::string layer = "all";                                           // globs on reference or candidate paths
  std::vector<std::string> dtypes = {"fp64", "fp32", "bf16", "fp16"};  // those that apply to the recording
  bool forced = true, free = true;
  TakeRules take;                   // of the free run: which ops the reference's program computes instead of the port
  Kernels kernels = Kernels::aten;  // what the factory's models call; decides how equal to LibTorch's they must be
  std::string given;           // options that decide verdicts, for the line that runs a row again: " --thresholds 'x'"
  std::string reference_name;  // set in every row when there are several references
  std::function<void(const std::string& step)> progress = [](const std::string&) {};
};

using ModelFactory = std::function<std::unique_ptr<PortedModel>(const Dump&, Precision)>;

struct MainJobResult {
  std::vector<OpResult> rows;  // by execution order of the reference, then dtype in the order asked for
  Coverage coverage;
  std::vector<LogitPair> logits;  // free-running
  std::string candidate;          // PortedModel::description
  std::vector<std::string> warnings;
};

/// Runs the model teacher-forced and free under every applicable precision and judges every paired boundary:
///   fp64  against the replayed oracle (gate logic), teacher-forced on the oracle's values
///   the recorded dtype  against the recorded values (gate dtype_path); fp32 on a half-width recording: against the
///   replay in fp32
/// Throws Error for a map rule that matches nothing and for unusable recordings. No rows when the layer pattern matches
/// nothing here.
MainJobResult run_main_job(const Dump& dump, const Program& program, const ModelFactory& make,
                           const MainJobOptions& options);

}  // namespace parity

// An extract (trace/extract.hpp) run again: does its program give what was recorded, and how far is the port?
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "core/precision.hpp"
#include "core/progress.hpp"
#include "core/stats.hpp"
#include "trace/program.hpp"

namespace parity {

struct ReproRow {
  std::string path, kind;
  int call = 0;
  at::ScalarType dtype = at::kFloat;  // as recorded
  std::vector<int64_t> shape;
  std::string key;      // of the recorded value
  bool result = false;  // among the results that the extract was made for
  Stats stats;          // recorded against recomputed
  double limit = 0;     // of rel_l2: twice what other valid arithmetic of the recorded dtypes lies from the recomputed
                        // value, and one roundoff
  bool reproduced = false;
};

struct PortRow {
  std::string path;
  Stats stats;              // the program on the port's inputs, in the recorded dtypes, against the port
  OracleStats oracle;       // both against the program on the port's inputs in fp64
  bool own_inputs = false;  // the port's inputs differed from the reference's
};

struct Repro {
  std::vector<ReproRow> rows;  // every stored boundary, in execution order
  std::vector<PortRow> port;
  std::vector<std::string> opaque;  // ops whose stored results were taken
  bool same_kernels = false;        // as recorded (trace/machine.hpp): then bits are demanded
  bool executed = true;             // false: every op of it is opaque
  bool reproduced = true;           // all results
};

/// Under Precision::recorded on the kind of machine that recorded it, a result is reproduced when all its bits are;
/// otherwise when rel_l2 is within `limit`. Throws Error when no result is stored, and as `replay`.
Repro run_again(const Dump& dump, const Program& program, Precision precision, const ShareDone& progress = nullptr);

}  // namespace parity

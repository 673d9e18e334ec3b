// Rows that are not green, grouped by cause: what a reader wants to know is how many things are wrong, not in how many
// rows each of them shows.
#pragma once
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// Rows with one verdict, gate and cause, failures also with one kind of op.
struct Cause {
  std::string name;  // "extra rounding: rounded to BFloat16"
  Verdict verdict = Verdict::fail;
  Gate gate = Gate::none;
  std::string kind;                   // "" when the rows are of several kinds
  std::vector<const OpResult*> rows;  // as in the report; never empty
};

/// Failures first, that of the first divergence before all others, then those with more rows.
std::vector<Cause> causes(const Report& report);

/// The named change that the diagnosis begins with, without the place ("GELU form: erf for tanh"), else the diagnosis
/// without its numbers.
std::string cause_name(const OpResult& op);

/// "26 rows, gate dtype_path, linear: extra rounding: …", with the share of the difference that it explains where that
/// is under nine tenths.
std::string cause_title(const Cause& cause);

/// "reference modeling_llama.py:312 · port attention.cpp:88"; "" when neither is recorded.
std::string source_text(const OpResult& op);
/// "paired by content 0.9998, order (confidence 0.97)"; "" where both sides have one name for it, or a map says so.
std::string pairing_text(const OpResult& op);

}  // namespace parity

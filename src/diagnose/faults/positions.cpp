// Positions counted from 1, or looked up some rows away; what a mask takes them for.
#include <fmt/format.h>

#include <set>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

// What positions are for: values of their own (angles, rows of a table), or a mask alone, in which they stand for
// queries or for keys.
struct Uses {
  bool values = false, smaller = false,
       larger = false;  // side of a comparison: smaller <= larger
};

Uses uses_of(const ProgramIndex& program, int index) {
  constexpr size_t kMost = 64;  // ops looked at
  Uses uses;
  std::vector<int> todo{index};
  std::set<int> seen(todo.begin(), todo.end());
  for (size_t next = 0; next < todo.size(); ++next) {
    if (next == kMost) return {true};
    for (const auto& output : program.op(todo[next]).outputs)
      if (output)
        for (const int reader : program.consumers(output->id)) {
          const Op& op = program.op(reader);
          const bool first = program.argument(reader, 0) == output->id;
          if (op.kind == "le" || op.kind == "lt")
            (first ? uses.smaller : uses.larger) = true;
          else if (op.kind == "ge" || op.kind == "gt")
            (first ? uses.larger : uses.smaller) = true;
          else if (op.kind == "embedding" || op.outputs.empty() || !op.outputs[0] || is_float(op.outputs[0]->dtype))
            uses.values = true;
          else if (op.outputs[0]->dtype != at::kBool && seen.insert(reader).second)
            todo.push_back(reader);
        }
  }
  return uses;
}

// The exponents of ALiBi's slopes (alibi.cpp).
bool counts_heads(const ProgramIndex& program, int index) {
  constexpr int kCasts = 3;
  const int power = program.ahead(index, "pow", kCasts);
  return power >= 0 && makes_slopes(program, power);
}

void counted_from_one(const ProgramIndex& program, int index, Hypotheses& to) {
  const Uses uses = uses_of(program, index);
  const bool mask = !uses.values && uses.smaller != uses.larger;
  const char* what = !mask         ? "positions from 1"
                     : uses.larger ? "queries' places from 1: one key more is seen"
                                   : "keys' places from 1: one key less is seen";
  add_fault(to, program, index, mask ? "mask off by one" : "position off by one", what, [](OpCall& call) {
    Results results = call.run_again();
    results[0] = *results[0] + 1;
    return results;
  });
}

// Two rows away: tables whose first rows are kept for padding (OPT, BART), where the port forgets it.
void other_rows_looked_up(const ProgramIndex& program, int index, Hypotheses& to) {
  const bool given = program.leaf_behind(program.argument(index, 1), 2) != nullptr;  // words, mostly
  for (const int by : {1, -1, 2, -2}) {
    if (given && std::abs(by) > 1) continue;
    add_fault(to, program, index, "position off by one", fmt::format("rows shifted by {:+d}", by), [by](OpCall& call) {
      const at::Tensor rows = call.tensor("indices");
      call.set("indices", (rows + by).clamp(0, call.tensor("weight").size(0) - 1));
      return call.run_again();
    });
  }
}

}  // namespace

void position_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind == "arange" && !op.outputs.empty() && op.outputs[0] && !counts_heads(program, index))
    counted_from_one(program, index, to);
  if (op.kind == "embedding") other_rows_looked_up(program, index, to);
}

}  // namespace parity

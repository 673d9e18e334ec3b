// What rows of every job begin with.
#pragma once
#include <ATen/ATen.h>

#include <string>

#include "core/result.hpp"
#include "pair/name_map.hpp"
#include "trace/program.hpp"

namespace parity {

/// The dtype a recording ran in: "bf16" or "fp16" when any op computed in half width, else "fp32" (or "fp64").
std::string recorded_dtype(const Program& program);

/// The head of a row about a boundary: index, path, call, kind, shape, line of source. No verdict yet.
OpResult row_of(const Program& program, size_t boundary);

/// Why the row's candidate tensor was taken, with the rule that says the same.
PairedBy paired_by(const OpResult& row, const std::string& witnesses, double confidence, const Layout& layout,
                   int candidate_call);

/// A row for what the reference computes and the candidate has no counterpart of.
OpResult missing_row(OpResult head, std::string diagnosis);

/// Verdict `shape` for a candidate's tensor that does not fit in this layout, with the map rule that would read it
/// where the layout is none. `reference`: the value it was to fit; undefined, no rule is looked for.
void judge_misfit(OpResult& row, const at::Tensor& candidate, const Layout& layout, const at::Tensor& reference);

/// The histogram of a judged row and, when it is not green, its worst elements; of a failed one the
/// diagnosis says where in the tensor the difference lies, if it lies somewhere. `reference` and `candidate`: what
/// `forced` was measured on (`free`, where the row has no other comparison).
void add_spread(OpResult& row, const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity

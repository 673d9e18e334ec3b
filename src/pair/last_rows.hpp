// A recorded program that goes on, from some values on, for the last token of a prompt alone.
#pragma once
#include <optional>
#include <set>
#include <vector>

#include "trace/program.hpp"

namespace parity {

/// The last axis but one, if it has that extent, else the first that has. Never the last, which is of features. Of two
/// axes the first may hold the tokens of several prompts, one after the other.
std::optional<int64_t> axis_of_tokens(const std::vector<int64_t>& shape, int64_t tokens);

/// From the boundaries `first` on a port has the last of `tokens` tokens alone.
struct LastRows {
  std::set<size_t> first;
  int64_t tokens = 0;
};

/// From the boundaries `last.first` on, each boundary's value with an axis of the tokens is its last row alone; with
/// `marked` (by boundary) those values alone of which a boundary is marked. The program is given six ops a value: the
/// row is taken and copied (the boundary is that copy, with a row a prompt) and repeated for what is computed from it.
/// The other rows of what follows are the last one's; what was recorded of them is left out of `Value::key`. Values
/// that are written to in place stay whole. Boundaries keep their indices.
void go_on_from_last_rows(Program& program, const LastRows& last, const std::vector<bool>* marked = nullptr);

/// Which boundaries are one of these or computed from one.
std::vector<bool> computed_from(const Program& program, const std::set<size_t>& first);

/// Which are one of `last.first` or computed from more than the last row of one: the logits, of whose last row a loop
/// takes the next token, are there alone.
std::vector<bool> computed_from_rows(const Program& program, const LastRows& last);

}  // namespace parity

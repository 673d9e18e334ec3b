// Which part of a recorded program a path names: one op with the views that feed it, or one module call.
#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "trace/flow.hpp"

namespace parity {

struct Selection {
  std::string path;
  int call = 0;          // how often the path was called before
  int module_call = -1;  // index into Program::calls: the module, or where the op runs (-1: outside)
  bool is_module = false;
  int begin = 0, end = 0;      // ops [begin, end) of Program::ops
  std::vector<int> views;      // ops before `begin` that only view what the op reads, ascending
  std::vector<Value> results;  // what leaves: the module's outputs; the op's outputs and what it writes to
};

/// `call`: which of several calls; may be left out where there is only one. Throws Error (one line, with the nearest
/// names) for a path that names nothing, several things, or a call without a result.
Selection select(const Dump& dump, const Program& program, const Flow& flow, const std::string& path,
                 std::optional<int> call = std::nullopt);

/// Value ids that the selected ops define.
std::set<int64_t> made_inside(const Selection& selection, const Flow& flow);
/// The selected ops, views first.
std::vector<int> selected_ops(const Selection& selection);

}  // namespace parity

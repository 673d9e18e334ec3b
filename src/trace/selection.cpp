#include "trace/selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

constexpr size_t kNearNames = 3;

// Levenshtein distance: single letters inserted, left out or exchanged.
size_t edits(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t exchanged = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({exchanged, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

std::string near_names(const Program& program, const std::string& path) {
  std::set<std::string> names;
  for (const ModuleCall& call : program.calls) names.insert(call.path);
  for (const Op& op : program.ops) names.insert(op.path);
  std::vector<std::pair<size_t, std::string>> order;
  for (const std::string& name : names) order.emplace_back(edits(path, name), name);
  std::sort(order.begin(), order.end());
  order.resize(std::min(order.size(), kNearNames));
  std::vector<std::string> quoted;
  for (const auto& [distance, name] : order) quoted.push_back(fmt::format("'{}'", name));
  return fmt::format("{}", fmt::join(quoted, ", "));
}

// Every call of the module or op of that name, in order: (call number, index).
template <typename Items>
std::vector<std::pair<int, int>> calls_of(const Items& items, const std::string& path) {
  std::vector<std::pair<int, int>> found;
  for (size_t i = 0; i < items.size(); ++i)
    if (items[i].path == path) found.emplace_back(items[i].call, static_cast<int>(i));
  return found;
}

int choose(const Dump& dump, const std::string& path, const std::vector<std::pair<int, int>>& found,
           std::optional<int> call) {
  if (!call && found.size() > 1)
    throw Error(fmt::format("{}: '{}' was called {} times; say which: --call {} to --call {}", dump.file().string(),
                            path, found.size(), found.front().first, found.back().first));
  for (const auto& [number, index] : found)
    if (!call || number == *call) return index;
  throw Error(fmt::format("{}: '{}' has no call {}; it was called {} time{}, counted from 0", dump.file().string(),
                          path, *call, found.size(), found.size() == 1 ? "" : "s"));
}

// Tensors whose own shape an op changed in place (unsqueeze_, set_, resize_): a view of them cannot be made again.
std::set<int64_t> reshaped(const Program& program, const Flow& flow, int end) {
  std::set<int64_t> ids;
  for (int i = 0; i < end; ++i)
    if (program.ops[i].view || program.ops[i].kind == "set_" || program.ops[i].kind == "resize_")
      ids.insert(flow.ops[i].writes.begin(), flow.ops[i].writes.end());
  return ids;
}

// The views between what op `index` reads and the memory behind it.
std::vector<int> feeding_views(const Program& program, const Flow& flow, int index) {
  const std::set<int64_t> changed = reshaped(program, flow, index);
  std::unordered_map<int64_t, int> maker;
  for (int i = 0; i < index; ++i)
    for (const int64_t id : flow.ops[i].fresh) maker[id] = i;
  std::set<int> views;
  std::vector<int64_t> open = flow.ops[index].reads;
  while (!open.empty()) {
    const int64_t id = open.back();
    open.pop_back();
    const auto found = maker.find(id);
    if (found == maker.end() || changed.contains(id)) continue;
    const OpFlow& view = flow.ops[found->second];
    if (view.base < 0 || changed.contains(view.base) || !views.insert(found->second).second) continue;
    open.insert(open.end(), view.reads.begin(), view.reads.end());
  }
  return {views.begin(), views.end()};
}

std::vector<Value> results_of(const Op& op) {
  std::vector<Value> results;
  for (const auto& output : op.outputs)
    if (output) results.push_back(*output);
  results.insert(results.end(), op.writes.begin(), op.writes.end());
  return results;
}

Selection select_module(const Program& program, int index) {
  const ModuleCall& call = program.calls[index];
  return {call.path, call.call, index, true, call.begin, call.end, {}, call.outputs};
}

Selection select_op(const Program& program, const Flow& flow, int index) {
  const Op& op = program.ops[index];
  return {op.path,       op.call, op.module_call, false, index, index + 1, feeding_views(program, flow, index),
          results_of(op)};
}

}  // namespace

Selection select(const Dump& dump, const Program& program, const Flow& flow, const std::string& path,
                 std::optional<int> call) {
  if (program.ops.empty())
    throw Error(fmt::format("{}: holds no program (written by a port's writer?); give the PyTorch recording",
                            dump.file().string()));
  const auto modules = calls_of(program.calls, path), ops = calls_of(program.ops, path);
  if (modules.empty() && ops.empty())
    throw Error(fmt::format("{}: no module or op is called '{}'; nearest: {}", dump.file().string(), path,
                            near_names(program, path)));
  const int index = choose(dump, path, modules.empty() ? ops : modules, call);
  Selection selection = modules.empty() ? select_op(program, flow, index) : select_module(program, index);
  if (selection.results.empty())
    throw Error(
        fmt::format("{}: '{}' call {} gave no tensor (interrupted, or it returns none); choose a module inside "
                    "or around it",
                    dump.file().string(), path, selection.call));
  if (!selection.is_module && is_uninitialised(program.ops[selection.begin].kind))
    throw Error(
        fmt::format("{}: '{}' only allocates memory: it has no result to reproduce; choose the op that fills it",
                    dump.file().string(), path));
  if (selection.begin == selection.end)
    throw Error(fmt::format("{}: '{}' call {} runs no op: its result is its input", dump.file().string(), path,
                            selection.call));
  return selection;
}

std::vector<int> selected_ops(const Selection& selection) {
  std::vector<int> ops = selection.views;
  for (int i = selection.begin; i < selection.end; ++i) ops.push_back(i);
  return ops;
}

std::set<int64_t> made_inside(const Selection& selection, const Flow& flow) {
  std::set<int64_t> ids;
  for (const int i : selected_ops(selection)) ids.insert(flow.ops[i].fresh.begin(), flow.ops[i].fresh.end());
  return ids;
}

}  // namespace parity

// Events -> Program: checks that the events fit together, and gives every op and boundary its path (FORMAT.md,
// "Paths").
#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/source_lines.hpp"
#include "trace/event_reader.hpp"
#include "trace/flow.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

std::string output_path(const std::string& path, size_t output) {
  return output == 0 ? path : fmt::format("{}[{}]", path, output);
}

bool is_numeric(at::ScalarType dtype) { return is_float(dtype) || at::isIntegralType(dtype, /*includeBool=*/false); }

// A mask inside a module is compared by what it masks; one that a caller gets stands for itself.
bool is_result(at::ScalarType dtype) { return is_numeric(dtype) || dtype == at::kBool; }

// Attention kernels return, after the result and its logsumexp, random states and debug masks that no kernel fills.
bool is_filler(const std::string& kind, size_t output) {
  return output >= 2 && kind.find("attention") != std::string::npos;
}

class Builder {
 public:
  explicit Builder(const Dump& dump) : dump_(dump), lines_(dump) {}

  Program build() {
    for (size_t i = 0; i < dump_.events().size(); ++i) {
      const EventReader event(dump_, i);
      const std::string kind = event.kind();
      if (kind == "leaf")
        leaf(event);
      else if (kind == "call")
        call(event);
      else if (kind == "op")
        op(event, i);
      else if (kind == "ret")
        ret(event);
      else if (kind == "point")
        point(event, i);
      else if (kind != "note")
        event.fail(fmt::format("kind '{}' is unknown", kind));
    }
    for (const auto& [serial, index] : open_) program_.calls[index].end = position();  // interrupted inside
    for (size_t i = 0; i < program_.boundaries.size(); ++i)
      program_.index.try_emplace({program_.boundaries[i].path, program_.boundaries[i].call}, i);
    program_.lines = lines_.texts();
    leave_out_unread();
    find_attention_in_steps();
    return std::move(program_);
  }

 private:
  int position() const { return static_cast<int>(program_.ops.size()); }

  void known(const EventReader& event, int64_t id) const {
    if (!ids_.contains(id)) event.fail(fmt::format("value {} is used before anything defines it", id));
  }

  void leaf(const EventReader& event) {
    Leaf leaf;
    leaf.value = event.value();
    leaf.names = event.texts("names");
    leaf.computed = event.flag("computed");
    leaf.position = position();
    event.alias(leaf);
    if (leaf.base >= 0) known(event, leaf.base);
    if (!ids_.insert(leaf.value.id).second) event.fail(fmt::format("value {} is defined twice", leaf.value.id));
    program_.leaves.push_back(std::move(leaf));
  }

  void call(const EventReader& event) {
    ModuleCall call;
    call.path = event.text("path");
    call.call = static_cast<int>(event.integer("call"));
    call.type = event.text_or("class", "");
    call.parent = call_index(event, event.integer("parent"));
    call.grad = event.flag("grad");
    call.inputs = event.values("inputs");
    for (const Value& value : call.inputs) known(event, value.id);
    call.literals = event.literal("literals", nlohmann::json::object());
    call.begin = position();
    call.boundary = program_.boundaries.size();
    const int index = static_cast<int>(program_.calls.size());
    if (!serials_.emplace(event.integer("id"), index).second) event.fail("this call id was used before");
    open_[event.integer("id")] = index;
    program_.calls.push_back(std::move(call));
  }

  int call_index(const EventReader& event, int64_t serial) const {
    if (serial == -1) return -1;
    const auto found = serials_.find(serial);
    if (found == serials_.end()) event.fail(fmt::format("module call {} has not begun", serial));
    return found->second;
  }

  void op(const EventReader& event, size_t index) {
    Op op;
    op.event = static_cast<int64_t>(index) + 1;
    op.line = lines_.find(index, "src");
    op.library_line = lines_.find(index, "lib");
    op.name = event.text("op");
    op.kind = operator_kind(op.name);
    op.module_call = call_index(event, event.integer("in"));
    const ModuleCall* inside = op.module_call < 0 ? nullptr : &program_.calls[op.module_call];
    const int before = counts_[{op.module_call, op.kind}]++;
    const int64_t nth = event.has("nth") ? event.integer("nth") : before;  // an extract leaves out what came before
    op.path = fmt::format("{}/{}.{}", inside ? inside->path : "~", op.kind, nth);
    op.call = inside ? inside->call : 0;
    op.args = event.literal("args", nlohmann::json::array());
    op.kwargs = event.literal("kwargs", nlohmann::json::object());
    op.opaque = event.text_or("opaque", "");
    op.view = event.flag("view");
    op.outputs = event.optional_values("out");
    if (event.has("writes")) op.writes = event.values("writes");
    std::vector<int64_t> read;
    collect_ids(op.args, read);
    for (const auto& argument : op.kwargs) collect_ids(argument, read);
    for (const Value& value : op.writes) read.push_back(value.id);
    for (const int64_t id : read) known(event, id);
    read_.insert(read.begin(), read.end());
    computed_here(op, read);
    program_.ops.push_back(std::move(op));
    op_boundaries(event, program_.ops.back());
  }

  // A write through a view changes the value that the view is of, too.
  void computed_here(const Op& op, const std::vector<int64_t>& read) {
    const auto root = [&](int64_t id) {
      const auto found = roots_.find(id);
      return found == roots_.end() ? id : found->second;
    };
    for (const int64_t id : written_ids(op)) made_at_[id] = made_at_[root(id)] = {op.line, op.library_line};
    for (const auto& value : op.outputs) {
      if (!value) continue;
      if (op.view && !read.empty() && !ids_.contains(value->id)) roots_.emplace(value->id, root(read.front()));
      made_at_[value->id] = {op.line, op.library_line};
    }
  }

  void op_boundaries(const EventReader& event, const Op& op) {
    const std::vector<int64_t> written = op.view ? written_ids(op) : std::vector<int64_t>();
    for (size_t j = 0; j < op.outputs.size(); ++j) {
      if (!op.outputs[j]) continue;
      const Value& value = *op.outputs[j];
      ids_.insert(value.id);
      if (op.view && std::find(written.begin(), written.end(), value.id) == written.end()) continue;
      const bool scratch = value.key.empty() && dump_.level() == "op";  // FORMAT.md: executed, not compared
      const bool comparable =
          is_numeric(value.dtype) && !scratch && !is_uninitialised(op.kind) && !is_filler(op.kind, j);
      if (is_for_derivative(op.kind, j)) for_derivative_.push_back(program_.boundaries.size());
      boundary(event, {output_path(op.path, j), op.call, op.kind, position(), value, comparable});
    }
  }

  void ret(const EventReader& event) {
    const auto found = open_.find(event.integer("id"));
    if (found == open_.end()) event.fail(fmt::format("module call {} is not running", event.integer("id")));
    ModuleCall& call = program_.calls[found->second];
    open_.erase(found);
    call.end = position();
    call.outputs = event.values("outputs");
    for (size_t j = 0; j < call.outputs.size(); ++j) {
      read_.insert(call.outputs[j].id);
      const Value& value = call.outputs[j];
      boundary(event, {output_path(call.path, j), call.call, call.type, position(), value, is_result(value.dtype)});
    }
  }

  // Only the writer's own outputs are places of the computation; its inputs and weights are found through the dump.
  void point(const EventReader& event, size_t index) {
    const std::string role = event.text_or("role", "output");
    if (role != "output" && role != "input" && role != "weight") event.fail(fmt::format("role '{}' is unknown", role));
    const Value value = event.value();
    read_.insert(value.id);
    if (!ids_.contains(value.id)) {  // named by a program that records no ops: it stands for itself
      const bool described = dump_.level() == "stats" || dump_.level() == "sketch";  // by statistics, or a sketch
      if (value.key.empty() && !described) event.fail(fmt::format("value {} is neither computed nor stored", value.id));
      ids_.insert(value.id);
      Leaf& leaf = program_.leaves.emplace_back();
      leaf.value = value;
      leaf.position = position();
    }
    if (const int line = lines_.find(index, "src"); line >= 0) made_at_[value.id] = {line, -1};
    if (role != "output") return;
    boundary(event, {event.text("path"), static_cast<int>(event.integer("call")), "point", position(), value,
                     is_result(value.dtype)});
  }

  void leave_out_unread() {
    for (const size_t i : for_derivative_)
      if (!read_.contains(program_.boundaries[i].value.id)) program_.boundaries[i].comparable = false;
  }

  void boundary(const EventReader& event, Boundary boundary) {
    known(event, boundary.value.id);
    boundary.comparable = boundary.comparable && !boundary.value.nested;
    if (const auto made = made_at_.find(boundary.value.id); made != made_at_.end())
      std::tie(boundary.line, boundary.library_line) = made->second;
    program_.boundaries.push_back(std::move(boundary));
  }

  // _scaled_dot_product_attention_math (ATen/native/transformers/attention.cpp) widens half operands, and rounds the
  // probabilities to their dtype as a second result. Its softmax differs from any other in rows that see no key.
  void find_attention_in_steps() {
    std::unordered_map<int64_t, Op*> softmax;
    for (Op& op : program_.ops) {
      if (op.kind == "_safe_softmax") {
        op.kind = "_softmax";
        if (!op.outputs.empty() && op.outputs[0]) softmax[op.outputs[0]->id] = &op;
      }
      if (op.kind != "_to_copy" || op.outputs.empty() || !op.outputs[0] || !is_half(op.outputs[0]->dtype)) continue;
      const auto found = softmax.find(argument_id(op, 0));
      if (found != softmax.end()) found->second->widened_from = op.outputs[0]->dtype;
    }
  }

  const Dump& dump_;
  SourceLines lines_;
  Program program_;
  std::unordered_map<int64_t, int64_t> roots_;  // value id of a view -> the value whose memory it shares
  std::unordered_map<int64_t, std::pair<int, int>>
      made_at_;                                        // value id -> line of the last op that computed or wrote to it
  std::unordered_set<int64_t> ids_;                    // defined so far
  std::unordered_set<int64_t> read_;                   // by an op, or returned by a call
  std::vector<size_t> for_derivative_;                 // boundaries of what kernels leave for theirs
  std::unordered_map<int64_t, int> serials_, open_;    // call serial -> index; those that have not returned
  std::map<std::pair<int, std::string>, int> counts_;  // (module call, op kind) -> how many so far
};

}  // namespace

Program load_program(const Dump& dump) { return Builder(dump).build(); }

at::Tensor axis_part(const at::Tensor& whole, const AxisPart& part) {
  return whole.unflatten(part.axis, {-1, part.of})
      .narrow(part.axis + 1, part.begin, part.length)
      .flatten(part.axis, part.axis + 1);
}

at::Tensor axis_parts(at::Tensor whole, const std::vector<AxisPart>& parts) {
  for (const AxisPart& part : parts) whole = axis_part(whole, part);
  return whole;
}

at::Tensor pack(std::vector<at::Tensor> parts, int64_t axis) {
  if (axis < 0)
    for (at::Tensor& part : parts) part = part.flatten();
  return at::cat(parts, std::max<int64_t>(axis, 0));
}

at::Tensor pack(const at::Tensor& whole, const PackedParts& packed) {
  std::vector<at::Tensor> parts;
  for (const auto& part : packed.parts) parts.push_back(axis_parts(whole, part));
  return pack(std::move(parts), packed.axis);
}

at::Tensor stored_value(const Dump& dump, const Value& value) {
  at::Tensor tensor = dump.value(value.key);
  if (!value.packed.parts.empty()) tensor = pack(tensor, value.packed);
  if (tensor.scalar_type() != value.dtype || tensor.sizes().vec() != value.shape)
    throw Error(fmt::format("{}: dataset '/values/{}' is {} [{}], the program says {} [{}]", dump.file().string(),
                            value.key, dtype_name(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "),
                            dtype_name(value.dtype), fmt::join(value.shape, ", ")));
  return tensor;
}

bool Leaf::is_weight() const {
  return std::ranges::any_of(names, [](const std::string& name) { return name.starts_with("weights/"); });
}

bool Leaf::is_recorded_input() const {
  const auto is_input = [](const std::string& name) { return name.starts_with("inputs/"); };
  return !value.key.empty() && std::ranges::any_of(names, is_input);
}

bool Program::is_result(size_t boundary) const {
  return std::ranges::any_of(boundaries, [&](const Boundary& other) {
    return other.path.empty() && other.value.id == boundaries[boundary].value.id;
  });
}

std::optional<size_t> Program::find(std::string_view path, int call) const {
  const auto found = index.find({std::string(path), call});
  return found == index.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace parity

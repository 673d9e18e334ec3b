#include "trace/extract_events.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/precision.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

using nlohmann::json;

json value_json(const Value& value) {
  json encoded{{"v", value.id}, {"d", dtype_name(value.dtype)}, {"s", value.shape}};
  if (!value.key.empty()) encoded["k"] = value.key;
  return encoded;
}

class Events {
 public:
  Events(const Dump& dump, const Program& program, const Flow& flow, const Selection& selection)
      : dump_(dump), program_(program), flow_(flow), selection_(selection), inside_(made_inside(selection, flow)) {
    for (size_t i = 0; i < dump.events().size(); ++i)
      if (dump.events()[i]["e"] == "call") calls_.push_back(i);
  }

  ExtractEvents build() {
    selection_.is_module ? module() : op();
    for (const json& event : result_.events) refer(event);
    for (const int i : selected_ops(selection_))
      for (const int64_t id : flow_.ops[i].writes) refer(id);
    add_source_lines();
    return std::move(result_);
  }

 private:
  void module() {
    const ModuleCall& call = program_.calls[selection_.module_call];
    const auto& events = dump_.events();
    const size_t begin = calls_[selection_.module_call];
    for (size_t i = begin; i < events.size(); ++i) {
      if (keep(events[i])) result_.events.push_back(events[i]);
      if (events[i]["e"] == "leaf" && !result_.events.empty() && result_.events.back()["e"] == "leaf")
        result_.events.back()["names"] = json::array();
      if (events[i]["e"] == "ret" && events[i]["id"] == events[begin]["id"]) break;
    }
    result_.events.front()["parent"] = -1;
    for (const Value& value : call.inputs) {
      if (inside_.contains(value.id)) continue;
      if (!value.key.empty()) result_.keys.emplace(value.id, value.key);
      result_.names.emplace(value.id, value.name.empty() ? fmt::format("{}", result_.names.size()) : value.name);
    }
    for (size_t j = 0; j < call.outputs.size(); ++j) result_.outputs.push_back(numbered_path(call.path, j));
  }

  // The notes that its ops' lines of source are numbered by.
  void add_source_lines() {
    std::set<int64_t> numbers;
    for (const json& event : result_.events)
      for (const char* key : {"src", "lib"})
        if (event.contains(key) && event[key].is_number_integer()) numbers.insert(event[key].get<int64_t>());
    for (const json& event : dump_.events())
      if (event.value("e", "") == "note" && event.contains("source_line") &&
          numbers.contains(event["source_line"].get<int64_t>()))
        result_.events.push_back(event);
  }

  bool keep(const json& event) {
    const std::string kind = event["e"];
    if (kind == "note") return false;
    if (kind != "leaf") return true;
    const bool lies_inside = event.contains("alias") && event["alias"].is_object() &&
                             inside_.contains(event["alias"].value("v", int64_t{-1}));
    if (lies_inside) inside_.insert(event["v"].get<int64_t>());
    return lies_inside;
  }

  void op() {
    const Op& op = program_.ops[selection_.begin];
    json call, ret;
    if (selection_.module_call >= 0) {  // the module that it ran in gives it its path
      call = dump_.events()[calls_[selection_.module_call]];
      call.update({{"parent", -1}, {"inputs", json::array()}, {"literals", json::object()}});
      ret = {{"e", "ret"}, {"id", call["id"]}, {"outputs", json::array()}};
      result_.events.push_back(call);
    }
    for (const int view : selection_.views) result_.events.push_back(op_event(view));
    result_.events.push_back(op_event(selection_.begin));
    name_arguments(op);
    name_results(op);
    if (!ret.is_null()) result_.events.push_back(ret);
  }

  // Its number in the module is no longer how many came before it; a view made elsewhere loses its place.
  json op_event(int index) const {
    const Op& op = program_.ops[index];
    json event = dump_.events()[op.event - 1];
    if (op.module_call != selection_.module_call)
      event["in"] = -1;
    else
      event["nth"] = std::stoi(op.path.substr(op.path.rfind('.') + 1));
    return event;
  }

  // A result without a boundary of its own (a view, memory written by an op that returns nothing) is named by a point.
  void name_results(const Op& op) {
    for (size_t j = 0; j < op.outputs.size(); ++j) {
      const std::string path = numbered_path(op.path, j);
      const auto boundary = program_.find(path, op.call);
      if (op.outputs[j] && boundary && program_.boundaries[*boundary].position == selection_.end)
        result_.outputs.push_back(path);
    }
    if (!result_.outputs.empty()) return;
    for (size_t j = 0; j < selection_.results.size(); ++j) {
      json point = value_json(selection_.results[j]);
      point.update({{"e", "point"}, {"path", numbered_path(op.path, j)}, {"call", op.call}, {"role", "output"}});
      result_.events.push_back(point);
      result_.outputs.push_back(numbered_path(op.path, j));
    }
  }

  void name_arguments(const Op& op) {
    const auto handle = find_operator(op.name);
    for (size_t i = 0; i < op.args.size(); ++i) {
      const bool known = handle && i < handle->schema().arguments().size();
      name_argument(op.args[i], known ? handle->schema().arguments()[i].name() : fmt::format("{}", i));
    }
    for (const auto& [name, argument] : op.kwargs.items()) name_argument(argument, name);
  }

  void name_argument(const json& argument, const std::string& name) {
    std::vector<int64_t> ids;
    collect_ids(argument, ids);
    for (size_t k = 0; k < ids.size(); ++k)
      result_.names.emplace(behind_views(ids[k]), ids.size() == 1 ? name : fmt::format("{}.{}", name, k));
  }

  int64_t behind_views(int64_t id) const {
    for (auto view = selection_.views.rbegin(); view != selection_.views.rend(); ++view) {
      const auto& fresh = flow_.ops[*view].fresh;
      if (std::find(fresh.begin(), fresh.end(), id) != fresh.end()) id = flow_.ops[*view].base;
    }
    return id;
  }

  void refer(int64_t id) {
    if (!inside_.contains(id)) result_.external.insert(id);
  }

  void refer(const json& node) {
    if (node.is_object() && node.contains("v") && node["v"].is_number_integer()) refer(node["v"].get<int64_t>());
    if (node.is_structured())
      for (const json& child : node) refer(child);
  }

  const Dump& dump_;
  const Program& program_;
  const Flow& flow_;
  const Selection& selection_;
  std::set<int64_t> inside_;
  std::vector<size_t> calls_;  // module call -> its event
  ExtractEvents result_;
};

}  // namespace

std::string numbered_path(const std::string& path, size_t output) {
  return output == 0 ? path : fmt::format("{}[{}]", path, output);
}

ExtractEvents events_of(const Dump& dump, const Program& program, const Flow& flow, const Selection& selection) {
  return Events(dump, program, flow, selection).build();
}

void drop_values(std::vector<json>& events, const std::set<int64_t>& ids) {
  const auto dropped = [&](const json& value) { return ids.contains(value.value("v", int64_t{-1})); };
  for (json& event : events)
    for (const char* list : {"inputs", "outputs"})
      if (event.contains(list)) {
        json kept = json::array();
        for (const json& value : event[list])
          if (!dropped(value)) kept.push_back(value);
        event[list] = std::move(kept);
      }
  std::erase_if(events, [&](const json& event) { return event["e"] == "point" && dropped(event); });
}

}  // namespace parity

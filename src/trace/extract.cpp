#include "trace/extract.hpp"
#include "trace/device.hpp"

#include <ATen/MemoryOverlap.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/dump_writer.hpp"
#include "dump/stored_values.hpp"
#include "trace/device.hpp"
#include "trace/entering.hpp"
#include "trace/extract_events.hpp"
#include "trace/settings.hpp"

namespace parity {
namespace {

using nlohmann::json;

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  return a.numel() == 0 || sha256_of_tensor(a) == sha256_of_tensor(b);
}

std::set<int64_t> wanted_ids(const ExtractEvents& events, const Selection& selection) {
  std::set<int64_t> ids = events.external;
  for (const Value& value : selection.results) ids.insert(value.id);
  return ids;
}

class Extraction {
 public:
  Extraction(const Dump& dump, const Program& program, const ExtractOptions& options, const std::filesystem::path& file)
      : dump_(dump),
        program_(program),
        options_(options),
        flow_(analyse_flow(program)),
        selection_(select(dump, program, flow_, options.path, options.call)),
        events_(events_of(dump, program, flow_, selection_)),
        approach_(dump, program, flow_, selection_, wanted_ids(events_, selection_), no_port_,
                  part_of(options.progress, 0, options.port ? .5 : 1)),
        writer_(file, head()) {
    for (const Leaf& leaf : program.leaves) {
      leaves_[leaf.value.id] = &leaf;
      next_id_ = std::max(next_id_, leaf.value.id + 1);
    }
    for (const OpFlow& op : flow_.ops)
      for (const int64_t id : op.fresh) next_id_ = std::max(next_id_, id + 1);
    for (const int i : selected_ops(selection_))
      for (const int64_t id : flow_.ops[i].writes) written_.insert(flow_.root.at(id));
  }

  Extracted run() {
    approach_.run_to_begin();
    enter();
    for (const json& event : events_.events) copy_values(event);
    approach_.run_selection();
    for (size_t j = 0; j < selection_.results.size(); ++j) add_result(j);
    if (options_.port) add_port();
    for (const json& event : leaf_events_) writer_.event(event);
    for (const json& event : events_.events) writer_.event(event);
    link_outputs();
    writer_.close();
    done_.path = selection_.path;
    done_.call = selection_.call;
    done_.ops = selected_ops(selection_).size();
    done_.leaves = leaf_events_.size();
    done_.outputs = events_.outputs;
    return std::move(done_);
  }

 private:
  DumpHead head() const {
    DumpHead head{dump_.level(), "parity-check extract " PARITY_VERSION, dump_.model(), dump_.provenance()};
    head.provenance["extracted"] = {{"file", dump_.file().filename().string()},
                                    {"sha256", sha256_of_file(dump_.file())},
                                    {"path", selection_.path},
                                    {"call", selection_.call},
                                    {"outputs", events_.outputs}};
    return head;
  }

  // What comes from outside becomes leaves, in its state when the selection began.
  void enter() {
    std::map<int64_t, at::Tensor> values;
    std::set<int64_t> missing;
    for (const int64_t id : events_.external) {
      if (const auto value = state_of(id))
        values[id] = *value;
      else
        missing.insert(id);
    }
    for (const int64_t id : missing)
      if (leaves_.contains(id)) leaf_events_.push_back(unstored_leaf(leaves_.at(id)->value));
    std::erase_if(missing, [&](int64_t id) { return leaves_.contains(id); });
    drop_values(events_.events, missing);
    entering_ = lay_out(
        values, [&](int64_t id) { return written_.contains(flow_.root.at(id)); }, next_id_);
    for (const EnteringLeaf& leaf : entering_) leaf_events_.push_back(leaf_event(leaf));
    if (!options_.port) return;
    for (const EnteringLeaf& leaf : entering_) {
      const at::Tensor state = state_with(leaf, entering_, [&](int64_t id) { return std::optional(values.at(id)); });
      if (state.defined()) before_[leaf.id] = sha256_of_tensor(state);
    }
  }

  // The recorded state where the recording holds it: a replay on another machine may differ in its last bits.
  std::optional<at::Tensor> state_of(int64_t id) {
    auto value = approach_.find(id);
    const auto key = events_.keys.find(id);
    if (key == events_.keys.end()) return value;
    const at::Tensor recorded = dump_.value(key->second);
    if (!value) return recorded;
    if (!same_bits(*value, recorded) && at::has_internal_overlap(*value) != at::MemOverlap::Yes) value->copy_(recorded);
    return value;
  }

  static json unstored_leaf(const Value& value) {
    return {{"e", "leaf"},      {"v", value.id}, {"d", dtype_name(value.dtype)},
            {"s", value.shape}, {"k", nullptr},  {"names", json::array()}};
  }

  json leaf_event(const EnteringLeaf& leaf) {
    const auto known = events_.keys.find(leaf.id);
    const std::string key = known != events_.keys.end() ? known->second : fmt::format("{}", leaf.id);
    writer_.value(key, leaf.tensor);
    json event{{"e", "leaf"},
               {"v", leaf.id},
               {"d", dtype_name(leaf.tensor.scalar_type())},
               {"s", leaf.tensor.sizes().vec()},
               {"k", key},
               {"names", link(leaf.id, key)}};
    const auto whole = leaves_.find(leaf.id);
    if (whole != leaves_.end() && whole->second->computed) event["computed"] = true;
    if (leaf.base < 0) return event;
    event["k"] = nullptr;  // its strides count: always a view of the base
    event["alias"] = {{"v", leaf.base}, {"stride", leaf.strides}, {"offset", leaf.offset}};
    return event;
  }

  json link(int64_t id, const std::string& key) {
    json names = json::array();
    if (const auto leaf = leaves_.find(id); leaf != leaves_.end())
      for (const std::string& name : leaf->second->names)
        if (name.starts_with("weights/")) names.push_back(name);
    const auto argument = events_.names.find(id);
    if (argument != events_.names.end() && (names.empty() || selection_.is_module))
      names.push_back("inputs/0/" + argument->second);
    if (names.empty() && events_.external.contains(id)) {
      done_.captured.push_back(fmt::format("captured.{}", id));
      names.push_back("inputs/0/" + done_.captured.back());
    }
    for (const auto& item : names) {
      const auto name = item.get<std::string>();
      const size_t step = name.starts_with("weights/") ? name.find('/') : name.find('/', name.find('/') + 1);
      writer_.link(name.substr(0, step), name.substr(step + 1), key);
    }
    return names;
  }

  void copy_values(const json& event) {
    for_each_stored_key(event, [&](const std::string& key) {
      if (!writer_.has_value(key)) writer_.value(key, dump_.value(key));
    });
  }

  // A result that the recording does not hold is computed.
  void add_result(size_t j) {
    const Value& value = selection_.results[j];
    if (value.key.empty() && value.nested) return;
    std::string key = value.key;
    if (key.empty()) {
      const auto computed = approach_.find(value.id);
      if (!computed) return;
      key = fmt::format("{}", value.id);
      for (int n = 1; writer_.has_value(key); ++n) key = fmt::format("{}.{}", value.id, n);
      writer_.value(key, *computed);
      store_under(value.id, key);
    }
    result_keys_.push_back(key);
  }

  // Where the selection hands the value out: its own `ret`, its op, its points.
  void store_under(int64_t id, const std::string& key) {
    const auto set = [&](json& list) {
      for (json& value : list)
        if (value.is_object() && value.value("v", int64_t{-1}) == id && !value.contains("k")) value["k"] = key;
    };
    for (json& event : events_.events) {
      const bool own_ret = event["e"] == "ret" && event["id"] == events_.events.front()["id"];
      if (selection_.is_module && own_ret) set(event["outputs"]);
      if (selection_.is_module) continue;
      if (event["e"] == "point" && event["v"] == id) event["k"] = key;
      if (event["e"] == "op" && dump_.level() != "op" && event.value("nth", -1) >= 0 && !event.value("view", false))
        set(event["out"]);
    }
  }

  void link_outputs() {
    for (size_t j = 0; j < result_keys_.size(); ++j) {
      const std::string& name = selection_.results[j].name;
      writer_.link("outputs/0", name.empty() ? fmt::format("{}", j) : name, result_keys_[j]);
    }
  }

  void add_port() {
    json inputs = json::array(), outputs = json::array();
    Approach port(dump_, program_, flow_, selection_, wanted_ids(events_, selection_), options_.port,
                  part_of(options_.progress, .5, 1));
    port.run_to_begin();
    for (const EnteringLeaf& leaf : entering_) {
      const at::Tensor state = state_with(leaf, entering_, [&](int64_t id) { return port.find(id); });
      if (!state.defined() || sha256_of_tensor(state) == before_.at(leaf.id)) continue;
      inputs.push_back(port_value(leaf.id, fmt::format("port.{}", leaf.id), state));
    }
    for (size_t j = 0; j < events_.outputs.size(); ++j) {
      const auto boundary = program_.find(events_.outputs[j], selection_.call);
      const auto value = boundary ? options_.port(*boundary) : std::nullopt;
      if (!value) continue;
      json encoded = port_value(program_.boundaries[*boundary].value.id, fmt::format("port.out.{}", j), *value);
      encoded["path"] = events_.outputs[j];
      writer_.link("port/outputs", fmt::format("{}", j), encoded["k"].get<std::string>());
      outputs.push_back(std::move(encoded));
    }
    done_.port_outputs = outputs.size();
    events_.events.push_back({{"e", "note"}, {"port", {{"inputs", inputs}, {"outputs", outputs}}}});
  }

  json port_value(int64_t id, const std::string& key, const at::Tensor& tensor) {
    writer_.value(key, tensor);
    return {{"v", id}, {"d", dtype_name(tensor.scalar_type())}, {"s", tensor.sizes().vec()}, {"k", key}};
  }

  const Dump& dump_;
  const Program& program_;
  const ExtractOptions& options_;
  const PortValues no_port_;
  Flow flow_;
  Selection selection_;
  ExtractEvents events_;
  Approach approach_;
  DumpWriter writer_;
  std::unordered_map<int64_t, const Leaf*> leaves_;
  std::set<int64_t> written_;  // memory (by its first value) that the selection writes to
  int64_t next_id_ = 0;
  std::vector<EnteringLeaf> entering_;
  std::map<int64_t, std::string> before_;  // leaf -> sha256 of its state before the selection ran
  std::vector<json> leaf_events_;
  std::vector<std::string> result_keys_;
  Extracted done_;
};

}  // namespace

Extracted extract(const Dump& dump, const Program& program, const ExtractOptions& options,
                  const std::filesystem::path& file) {
  // Recorded below autograd and autocast, so replayed below them.
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const RecordedSettings settings(dump.provenance());
  const ReplayDevice host(at::kCPU);  // its file holds bytes, and most of what it needs is stored in the recording
  return Extraction(dump, program, options, file).run();
}

PortState port_state(const Dump& extract) {
  PortState state;
  for (const json& event : extract.events()) {
    if (event["e"] != "note" || !event.contains("port") || !event["port"].is_object()) continue;
    for (const json& value : event["port"].value("inputs", json::array()))
      state.inputs[value.at("v").get<int64_t>()] = extract.value(value.at("k").get<std::string>());
    for (const json& value : event["port"].value("outputs", json::array()))
      state.outputs[value.at("path").get<std::string>()] = extract.value(value.at("k").get<std::string>());
  }
  return state;
}

std::vector<std::pair<std::string, int>> result_paths(const Dump& extract, const Program& program) {
  std::vector<std::pair<std::string, int>> paths;
  const json extracted = extract.provenance().value("extracted", json::object());
  if (extracted.contains("outputs") && extracted["outputs"].is_array())
    for (const json& path : extracted["outputs"])
      if (path.is_string()) paths.emplace_back(path.get<std::string>(), extracted.value("call", 0));
  if (!paths.empty()) return paths;
  for (const ModuleCall& call : program.calls)
    for (size_t j = 0; call.path.empty() && j < call.outputs.size(); ++j)
      paths.emplace_back(numbered_path("", j), call.call);
  return paths;
}

}  // namespace parity

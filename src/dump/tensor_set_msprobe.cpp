// msprobe's dump.json (mindstudio-probe 26.2): {"task", "level", "dump_data_dir", "data": {call: {"input_args",
// "output", …}}} with a file for each tensor, .pt or .npy, in the folder dump_tensor_data beside it. A module's call is
// named Module.<path>.<class>.forward.<n>, an operator's Functional.linear.<n>.forward.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "dump/json_file.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

constexpr int kDeepestValue = 100;

struct CallName {
  std::string path;
  int call = 0;
};

std::optional<int> number_in(const std::string& text) {
  const bool digits = !text.empty() && text.size() < 9 &&
                      std::all_of(text.begin(), text.end(), [](unsigned char c) { return c >= '0' && c <= '9'; });
  return digits ? std::optional(std::stoi(text)) : std::nullopt;
}

std::string take_last(std::string& text) {
  const size_t dot = text.rfind('.');
  const std::string last = dot == std::string::npos ? text : text.substr(dot + 1);
  text.resize(dot == std::string::npos ? 0 : dot);
  return last;
}

/// nullopt: no forward call.
std::optional<CallName> parsed(std::string name) {
  for (const std::string_view prefix : {"Module.", "Cell."}) {
    if (!name.starts_with(prefix)) continue;
    name = name.substr(prefix.size());
    const auto call = number_in(take_last(name));
    if (!call || take_last(name) != "forward") return std::nullopt;
    take_last(name);  // the class
    return CallName{name, *call};
  }
  if (take_last(name) != "forward") return std::nullopt;
  const auto call = number_in(take_last(name));
  return call ? std::optional(CallName{name, *call}) : std::nullopt;
}

class MsprobeSet final : public TensorSet {
 public:
  MsprobeSet(const std::filesystem::path& file, const OrderedJson& document)
      : TensorSet(file), folder_(file.parent_path() / "dump_tensor_data") {
    for (const auto& [name, entry] : document.at("data").items()) {
      const auto call = parsed(name);
      const auto outputs = call ? entry.find("output") : entry.end();
      if (outputs == entry.end()) {
        ++left_out_;
        continue;
      }
      int index = 0;
      add_outputs(*outputs, *call, index, 0);
    }
    if (parts_.empty() && statistics_ > 0)
      throw Error(fmt::format("{}: holds statistics of {} tensors and none in full; dump with \"task\": \"tensor\"",
                              file.string(), statistics_));
    if (statistics_ > 0) note(fmt::format("left out, being statistics alone: {} outputs", statistics_));
    if (left_out_ > 0) note(fmt::format("left out, being no results of forward calls: {} entries", left_out_));
  }

 private:
  void add_outputs(const OrderedJson& value, const CallName& call, int& index, int depth) {
    if (depth > kDeepestValue) throw Error(fmt::format("{}: values lie too deep in each other", file().string()));
    if (value.is_object() && value.contains("type")) {
      if (value.value("type", "").find("Tensor") == std::string::npos) return;
      const std::string path = index == 0 ? call.path : fmt::format("{}[{}]", call.path, index);
      ++index;
      if (!value.contains("data_name")) return void(++statistics_);
      add_file(value["data_name"].get<std::string>(), path, call.call);
    } else if (value.is_structured()) {
      for (const OrderedJson& part : value) add_outputs(part, call, index, depth + 1);
    }
  }

  void add_file(const std::string& name, const std::string& path, int call) {
    auto part = TensorSet::open(file_beside(folder_, name, file()));
    if (part->names().size() != 1)
      throw Error(fmt::format("{}: is not one tensor, as msprobe saves them", part->file().string()));
    const auto& [dtype, shape] = part->type(part->names()[0]);
    add(name_of_call(path, call), dtype, shape);
    parts_.push_back(std::move(part));
  }

  at::Tensor read(size_t index) const override { return parts_[index]->value(parts_[index]->names()[0]); }

  std::filesystem::path folder_;
  std::vector<std::unique_ptr<TensorSet>> parts_;
  int64_t statistics_ = 0, left_out_ = 0;
};

}  // namespace

std::unique_ptr<TensorSet> open_msprobe_dump(const std::filesystem::path& file, const OrderedJson& document) {
  return std::make_unique<MsprobeSet>(file, document);
}

}  // namespace parity

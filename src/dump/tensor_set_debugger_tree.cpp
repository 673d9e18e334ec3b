// What transformers' model_addition_debugger_context(model, debug_path=…, use_repr=False) leaves: a tree of module
// calls in JSON, and beside it a .safetensors for each tensor, with one tensor "data" (transformers 5.23,
// model_debugging_utils.py). A module's file is written at every call, so that of a repeated one the last call's values
// are there; outputs of modules with children are not written at all.
#include <fmt/format.h>

#include "core/error.hpp"
#include "dump/json_file.hpp"
#include "dump/safetensors.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

constexpr int kDeepest = 500;  // modules in each other; a stack's worth of hostile nesting is refused

class DebuggerTree final : public TensorSet {
 public:
  DebuggerTree(const std::filesystem::path& file, const OrderedJson& root) : TensorSet(file) {
    root_ = root.at("module_path").get<std::string>();
    if (const size_t space = root_.find(' '); space != std::string::npos) root_.resize(space);  // "Net (top-level)"
    collect(root, 0);
    for (const Call& call : order_)
      if (const int n = calls_.at(call.path) - 1; call.number == n) add_outputs(call);
    if (printed_ > 0 && stored_.empty())
      throw Error(fmt::format("{}: holds {} printed tensors and none in full; record with use_repr=False",
                              file.string(), printed_));
    if (repeated_ > 0)
      note(fmt::format("{} modules are called more than once; the files hold their last call alone", repeated_));
  }

 private:
  struct Call {
    std::string path;
    int number;
    const OrderedJson* outputs;
  };

  std::string path_of(const std::string& module) const {
    if (module == root_ || module.starts_with(root_ + " ")) return "";
    return module.starts_with(root_ + ".") ? module.substr(root_.size() + 1) : module;
  }

  // In the order in which calls end, as a recording has their results.
  void collect(const OrderedJson& node, int depth) {
    if (depth > kDeepest) throw Error(fmt::format("{}: modules lie more than {} deep", file().string(), kDeepest));
    if (const auto children = node.find("children"); children != node.end())
      for (const OrderedJson& child : *children) collect(child, depth + 1);
    const std::string path = path_of(node.at("module_path").get<std::string>());
    const int number = calls_[path]++;
    repeated_ += number == 1;
    if (const auto outputs = node.find("outputs"); outputs != node.end()) order_.push_back({path, number, &*outputs});
  }

  void add_outputs(const Call& call) {
    int index = 0;
    add_tensors(*call.outputs, call, index, 0);
  }

  void add_tensors(const OrderedJson& value, const Call& call, int& index, int depth) {
    if (depth > kDeepest) throw Error(fmt::format("{}: values lie more than {} deep", file().string(), kDeepest));
    if (value.is_object() && value.contains("value") && value.contains("dtype")) {
      if (!value["value"].is_string()) return void(++printed_);
      add_tensor(value["value"].get<std::string>(), call, index++);
    } else if (value.is_structured()) {
      for (const OrderedJson& part : value) add_tensors(part, call, index, depth + 1);
    }
  }

  void add_tensor(const std::string& name, const Call& call, int index) {
    stored_.emplace_back(file_beside(file().parent_path(), name, file()));
    const Safetensors& tensors = stored_.back();
    if (!tensors.has("data")) throw Error(fmt::format("{}: '{}' holds no tensor 'data'", file().string(), name));
    add(name_of_call(index == 0 ? call.path : fmt::format("{}[{}]", call.path, index), call.number),
        tensors.dtype("data"), tensors.shape("data"));
  }

  at::Tensor read(size_t index) const override { return stored_[index].tensor("data"); }

  std::string root_;
  std::map<std::string, int> calls_;
  std::vector<Call> order_;
  std::vector<Safetensors> stored_;
  int64_t printed_ = 0, repeated_ = 0;
};

}  // namespace

std::unique_ptr<TensorSet> open_debugger_tree(const std::filesystem::path& file, const OrderedJson& document) {
  return std::make_unique<DebuggerTree>(file, document);
}

}  // namespace parity

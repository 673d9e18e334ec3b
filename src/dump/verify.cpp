#include "dump/verify.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/sketch.hpp"
#include "dump/stored_values.hpp"

namespace parity {
namespace {

using nlohmann::json;

struct Reference {
  std::string dtype;
  std::vector<int64_t> shape;
  size_t event;
};

class Verifier {
 public:
  Verifier(const Dump& dump, std::vector<std::string>* information, const ShareDone& progress)
      : dump_(dump), information_(information), progress_(progress) {}

  std::vector<std::string> run() {
    if (!dump_.complete()) problem("the recording is incomplete: it was interrupted, or an exception left it");
    for (size_t i = 0; i < dump_.events().size(); ++i) collect(dump_.events()[i], i + 1);
    for (size_t done = 0; const auto& [key, reference] : references_) {
      check_value(key, reference);
      if (progress_) progress_(static_cast<double>(++done) / static_cast<double>(references_.size()));
    }
    if (dump_.level() == "sketch") check_sketches();
    check_links();
    for (const std::string& key : dump_.value_keys())
      if (!references_.contains(key) && !sketches_.contains(key))
        inform(fmt::format("value '{}' is stored but no event refers to it", key));
    return std::move(problems_);
  }

 private:
  void problem(std::string_view text) { problems_.emplace_back(text); }
  void inform(std::string text) {
    if (information_ != nullptr) information_->push_back(std::move(text));
  }

  // Values are objects with "v", wherever an event keeps them.
  void collect(const json& node, size_t event) {
    if (is_stored_value(node)) add(node, event);
    if (node.is_object() && node.contains("e") && node["e"] == "leaf" && node.contains("names") &&
        node["names"].is_array())
      for (const json& name : node["names"])
        if (name.is_string()) named_.insert(name.get<std::string>());
    if (node.is_structured())
      for (const json& child : node) collect(child, event);
  }

  void add(const json& value, size_t event) {
    Reference reference{"", {}, event};
    if (!value.contains("d") || !value["d"].is_string() || !value.contains("s") || !value["s"].is_array())
      return problem(fmt::format("event {}: a value has no dtype or shape", event));
    reference.dtype = value["d"].get<std::string>();
    for (const json& size : value["s"]) reference.shape.push_back(size.is_number_integer() ? size.get<int64_t>() : -1);
    const auto [known, added] = references_.try_emplace(value["k"].get<std::string>(), reference);
    if (!added && (known->second.dtype != reference.dtype || known->second.shape != reference.shape))
      problem(fmt::format("events {} and {} disagree about value '{}'", known->second.event, event, known->first));
  }

  void check_value(const std::string& key, const Reference& reference) {
    if (!dump_.has_value(key))
      return problem(fmt::format("event {} refers to value '{}', which is not stored", reference.event, key));
    try {
      const at::Tensor tensor = dump_.value(key);
      if (dtype_name(tensor.scalar_type()) != reference.dtype || tensor.sizes().vec() != reference.shape)
        problem(fmt::format("value '{}' is stored as {} [{}], event {} says {} [{}]", key,
                            dtype_name(tensor.scalar_type()), fmt::join(tensor.sizes(), ", "), reference.event,
                            reference.dtype, fmt::join(reference.shape, ", ")));
      count_non_finite(key, tensor);
    } catch (const Error& error) {
      problem(error.what());
    }
  }

  void check_sketches() {
    try {
      for (const SketchPoint& point : sketch_points(dump_))
        if (point.sketched) check_sketch(point);
    } catch (const Error& error) {
      problem(error.what());
    }
  }

  // Its length is the tensor's norm within some percent: buckets and statistics that do not belong together show.
  void check_sketch(const SketchPoint& point) {
    sketches_.insert(point.key);
    const Sketch sketch = read_sketch(dump_, point);
    double squares = 0;
    for (const double bucket : sketch.buckets) squares += bucket * bucket;
    const double error = 30 * std::sqrt(2 / static_cast<double>(sketch.buckets.size())) * sketch.sum_squares;
    if (!(std::abs(squares - sketch.sum_squares) <= error) && std::isfinite(sketch.sum_squares))
      problem(fmt::format("the sketch of '{}' has length {:.3g}, its tensor norm {:.3g}: they do not belong together",
                          point.path, std::sqrt(squares), sketch.norm()));
    if (sketch.nan + sketch.inf > 0)
      inform(fmt::format("'{}' has {} non-finite of {} numbers", point.path, sketch.nan + sketch.inf, sketch.count));
  }

  void count_non_finite(const std::string& key, const at::Tensor& tensor) {
    if (!is_float(tensor.scalar_type())) return;
    const at::Tensor wide = at::isFloat8Type(tensor.scalar_type()) ? tensor.to(at::kFloat) : tensor;
    const auto count = at::isfinite(wide).logical_not().sum().item<int64_t>();
    if (count > 0) inform(fmt::format("value '{}' has {} non-finite of {} elements", key, count, tensor.numel()));
  }

  template <typename Check>
  void check_link(const std::string& name, Check check) {
    named_.erase(name);
    try {
      check();
    } catch (const Error& error) {
      problem(error.what());
    }
  }

  void check_links() {
    for (const std::string& name : dump_.weight_names()) check_link("weights/" + name, [&] { dump_.weight(name); });
    for (int call = 0;; ++call) {
      const auto names = dump_.input_names(call);
      if (names.empty()) break;
      for (const std::string& name : names)
        check_link(fmt::format("inputs/{}/{}", call, name), [&] { dump_.input(name, call); });
    }
    for (const std::string& name : named_)
      if (name.find('%') == std::string::npos) problem(fmt::format("'/{}' is named by the events but missing", name));
  }

  const Dump& dump_;
  std::vector<std::string>* information_;
  const ShareDone& progress_;
  std::map<std::string, Reference> references_;  // by key
  std::set<std::string> sketches_;               // keys of sketches
  std::set<std::string> named_;                  // "weights/…", "inputs/…" of leaves
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> verify(const Dump& dump, std::vector<std::string>* information, const ShareDone& progress) {
  return Verifier(dump, information, progress).run();
}

}  // namespace parity

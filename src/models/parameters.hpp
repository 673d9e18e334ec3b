// The parameters of any model: where they come from, by name, and fetching them with the shapes that a configuration
// makes.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "dump/dump.hpp"

namespace parity {

/// Every parameter's name and shape, in the model's order.
using Parameters = std::vector<std::pair<std::string, std::vector<int64_t>>>;

/// Where parameters come from, by the model's own names. `get` throws Error when one is absent.
struct WeightSource {
  std::function<at::Tensor(const std::string&)> get;
  std::function<bool(const std::string&)> has;
};

/// From the model's own name of a parameter to the one it is stored under.
using StoredName = std::function<std::string(const std::string&)>;

/// A recording's weights. The dump must outlive the source.
WeightSource weights_of(const Dump& dump, StoredName stored_name);

struct Affine {
  at::Tensor weight, bias;
};

/// Fetches parameters and holds their shapes to the configuration's.
class ShapedWeights {
 public:
  /// `model`: whose, for messages. The source must outlive this.
  ShapedWeights(std::string model, const Parameters& parameters, const WeightSource& source);

  /// As stored. Throws Error naming the parameter when it is absent or has another shape; names that are none of the
  /// parameters (a recorded constant) have no shape to hold.
  at::Tensor get(const std::string& name) const;
  bool has(const std::string& name) const { return source_.has(name); }

 private:
  std::string model_;
  std::map<std::string, std::vector<int64_t>> shapes_;
  const WeightSource& source_;
};

}  // namespace parity

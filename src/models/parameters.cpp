#include "models/parameters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"

namespace parity {

WeightSource weights_of(const Dump& dump, StoredName stored_name) {
  return {[&dump, stored_name](const std::string& name) { return dump.weight(stored_name(name)); },
          [&dump, stored_name](const std::string& name) { return dump.has_weight(stored_name(name)); }};
}

ShapedWeights::ShapedWeights(std::string model, const Parameters& parameters, const WeightSource& source)
    : model_(std::move(model)), shapes_(parameters.begin(), parameters.end()), source_(source) {}

at::Tensor ShapedWeights::get(const std::string& name) const {
  auto found = source_.get(name);
  const auto expected = shapes_.find(name);
  if (expected != shapes_.end() && found.sizes() != at::IntArrayRef(expected->second))
    throw Error(fmt::format("[{}] weight '{}' is [{}], the configuration makes it [{}]", model_, name,
                            fmt::join(found.sizes(), ", "), fmt::join(expected->second, ", ")));
  return found;
}

}  // namespace parity

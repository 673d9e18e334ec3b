// What a row is, in words that can be counted: the attributes that failing rows may have in common.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// {attribute, value}: {"last dimension", "80"}, {"kind", "attention"}, {"layer", "odd"}. An attribute may have several
/// values at once (the parts of a path).
using Attribute = std::pair<std::string, std::string>;

/// Most telling attributes first. `first_layer`, `last_layer`: of the rows that are compared.
std::vector<Attribute> attributes_of(const OpResult& op, int first_layer, int last_layer);

/// The number of the layer in a path ("blocks.3.norm1": 3); -1 when it has none.
int layer_of(const OpResult& op);

}  // namespace parity

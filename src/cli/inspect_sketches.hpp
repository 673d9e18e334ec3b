// parity-check inspect on a recording of level sketch.
#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "dump/dump.hpp"

namespace parity::cli {

/// Reads every sketch and returns a line for each tensor that `layer` matches: type, buckets, norm, range. The rows
/// are added to `json` as "tensors". Throws Error for a damaged sketch, or when `layer` matches nothing.
std::string describe_sketches(const Dump& dump, const std::string& layer, nlohmann::json& json);

}  // namespace parity::cli

// parity-check inspect on a file of tensors, and how `inspect` writes types and sizes.
#pragma once
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "dump/tensor_set.hpp"

namespace parity::cli {

/// Names, dtypes, shapes, sizes; `verify`: every tensor is read, non-finite elements are counted, and the JSON has each
/// one's SHA-256 (row-major). Exit status 0. Throws Error when the set or a tensor is unusable, or `layer` matches
/// none.
int inspect_tensors(const Common& common, const std::string& file, const std::string& layer, bool verify);

std::string human_bytes(double bytes);                                           // "1.5 MiB"
std::string type_text(at::ScalarType dtype, const std::vector<int64_t>& shape);  // "bf16 [2x3]"

}  // namespace parity::cli

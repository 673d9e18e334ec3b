// An ONNX model as the reference's side: run on the inputs that the candidate was given.
#pragma once
#include <filesystem>

#include "jobs/sides.hpp"

namespace parity {

/// The model in `file` on the inputs in the file `inputs` (a recording or a set of tensors, by the names of the model's
/// inputs; "": those that the candidate recorded), one run for each call of theirs. Throws Error, one line: a file that
/// cannot be used, an input that is missing or does not fit, an operator that is neither known nor recorded.
OpenedSide open_onnx_side(const std::filesystem::path& file, const OpenedSide& candidate,
                          const std::filesystem::path& inputs);

}  // namespace parity

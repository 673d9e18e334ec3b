// What ran of a model as a recording (probes/FORMAT.md): modules and nodes as calls, ATen's ops inside them.
#pragma once
#include <filesystem>

#include "onnx/program.hpp"

namespace parity::onnx {

/// Writes the recording `to` of the model in `file`. Weights, inputs, outputs and what no replay can compute are
/// stored, the rest is recomputed by replay (level "module"). Throws Error when it cannot be written.
void write_recording(const std::filesystem::path& to, const std::filesystem::path& file, const Model& model,
                     const Names& names, const RanModel& ran);

}  // namespace parity::onnx

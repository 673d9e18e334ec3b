// An ONNX model as the reference of a comparison: run on given inputs, it is an ordinary recording.
#pragma once
#include <filesystem>
#include <memory>

#include "dump/dump.hpp"
#include "onnx/program.hpp"

namespace parity::onnx {

struct Reference {
  std::unique_ptr<Dump> dump;      // called by the model's file name; its own file is gone already
  std::vector<std::string> notes;  // for people
};

/// What the candidate recorded.
struct Recorded {
  RecordedValue value;
  ShapeOf shape;  // by path
};

/// The model in `file` as it runs on each of `inputs` (at least one; by the names of the graph's inputs). `recorded`
/// stands in for operators that are not known here, and tells the names of modules' further results. Throws Error, one
/// line, as read_model and run_model; when the temporary folder has no room.
Reference open_reference(const std::filesystem::path& file, const std::vector<Inputs>& inputs,
                         const Recorded& recorded);

}  // namespace parity::onnx

// One side of a weight audit: named parameters, read one at a time.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "dump/dump.hpp"
#include "dump/tensor_set.hpp"

namespace parity {

struct Parameter {
  std::string name;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  int64_t count() const;  // elements
};

/// The weights of a recording, or all tensors of a set (.safetensors, .npz, .pt, a folder). Not thread-safe.
class WeightSide {
 public:
  /// Throws Error: unreadable, foreign, hostile; a recording that holds no weights.
  explicit WeightSide(const std::filesystem::path& file);

  const std::vector<Parameter>& parameters() const { return parameters_; }
  /// Read anew at every call: nothing is kept. Throws Error when damaged.
  at::Tensor load(size_t parameter) const;
  /// For the report's head; files above 1 GB are not hashed (reading them takes longer than the audit) and it says so.
  Side describe() const;
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::filesystem::path file_;
  std::unique_ptr<Dump> dump_;  // one of the two
  mutable std::unique_ptr<TensorSet> set_;
  mutable int64_t read_ = 0;  // bytes since `set_` was opened
  std::vector<Parameter> parameters_;
  std::vector<std::string> notes_;
};

}  // namespace parity

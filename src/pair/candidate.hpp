// The port's side of a comparison: named tensors in execution order, wherever they come from.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "dump/tensor_set.hpp"
#include "trace/program.hpp"

namespace parity {

struct ShardedTensor;  // ranks/shards.hpp

struct CandidateTensor {
  std::string path;
  int call = 0;
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  std::function<at::Tensor()> load;  // in the candidate's own layout
  bool of_op = false;                // an op's result inside a module, named by the recorder (blocks.0/add.1)
  std::string source{};              // the line of the candidate's code that computed it, "" if not recorded
  std::shared_ptr<const ShardedTensor> shards{};  // the ranks' parts, where several ranks recorded it
};

/// What a recording holds: module outputs, op results and named points that are stored and can be compared.
/// `dump` and `program` must outlive the tensors.
std::vector<CandidateTensor> tensors_of(const Dump& dump, const Program& program);

/// All tensors of a set. `set` must outlive them.
std::vector<CandidateTensor> tensors_of(const TensorSet& set);

}  // namespace parity

#include "pair/candidate.hpp"

namespace parity {

std::vector<CandidateTensor> tensors_of(const Dump& dump, const Program& program) {
  std::vector<CandidateTensor> tensors;
  for (const Boundary& b : program.boundaries) {
    if (!b.comparable || b.value.key.empty()) continue;
    const bool of_op = b.kind != "point" && b.path.find('/') != std::string::npos;
    tensors.push_back({b.path, b.call, b.value.dtype, b.value.shape,
                       [&dump, value = b.value] { return stored_value(dump, value); }, of_op, program.source(b.line)});
  }
  return tensors;
}

std::vector<CandidateTensor> tensors_of(const TensorSet& set) {
  std::vector<CandidateTensor> tensors;
  for (const std::string& name : set.names()) {
    const auto& [dtype, shape] = set.type(name);
    tensors.push_back({name, 0, dtype, shape, [&set, name] { return set.value(name); }, false});
  }
  return tensors;
}

}  // namespace parity

#include "trace/valid.hpp"

#include <algorithm>

namespace parity {
namespace {

constexpr int64_t kBlockTerms = 32;  // terms of a block: the depth of a register tile in BLAS libraries
constexpr int64_t kLeaves = 16;      // terms of a leaf of pairwise summation
constexpr int64_t kLanes = 4;        // interleaved partial sums: a vector register of fp32

}  // namespace

c10::IValue* ValidCall::find(std::string_view name) {
  const auto index = argument_index(schema, name);
  return index && !stack[*index].isNone() ? &stack[*index] : nullptr;
}

at::Tensor ValidCall::tensor(std::string_view name) {
  c10::IValue* value = find(name);
  return value != nullptr && value->isTensor() ? value->toTensor() : at::Tensor();
}

double ValidCall::number(std::string_view name, double otherwise) {
  c10::IValue* value = find(name);
  return value != nullptr && value->isScalar() ? value->toScalar().toDouble() : otherwise;
}

void ValidCall::flip(std::string_view name, int64_t axis) {
  c10::IValue* value = find(name);
  if (value != nullptr && value->isTensor() && value->toTensor().defined()) *value = value->toTensor().flip({axis});
}

at::ScalarType sum_dtype(at::ScalarType dtype) {
  return dtype == at::kBFloat16 || dtype == at::kHalf ? at::kFloat : dtype;
}

std::vector<SumPart> sum_parts(Arithmetic arithmetic, int64_t length) {
  std::vector<SumPart> parts;
  const auto by = [&](int64_t size) {
    for (int64_t begin = 0; begin < length; begin += size) parts.push_back({begin, std::min(size, length - begin)});
  };
  if (arithmetic == Arithmetic::split)
    by(std::max<int64_t>(1, (length + 1) / 2));
  else if (arithmetic == Arithmetic::blocked)
    by(std::max(kBlockTerms, (length + kBlockTerms - 1) / kBlockTerms));
  else if (arithmetic == Arithmetic::pairwise)
    by(std::max(kLeaves, (length + kBlockTerms - 1) / kBlockTerms));
  else if (arithmetic == Arithmetic::interleaved && length >= 2 * kLanes)
    for (int64_t lane = 0; lane < kLanes; ++lane)
      parts.push_back({lane, (length - lane + kLanes - 1) / kLanes, kLanes});
  else
    by(length);
  return parts;
}

at::Tensor added_up(Arithmetic arithmetic, std::vector<at::Tensor> terms) {
  while (arithmetic == Arithmetic::pairwise && terms.size() > 1) {
    std::vector<at::Tensor> sums;
    for (size_t i = 0; i + 1 < terms.size(); i += 2) sums.push_back(terms[i] + terms[i + 1]);
    if (terms.size() % 2 == 1) sums.push_back(terms.back());
    terms = std::move(sums);
  }
  at::Tensor sum = terms.front();
  for (size_t i = 1; i < terms.size(); ++i) sum = sum + terms[i];
  return sum;
}

std::optional<Results> run_otherwise(Arithmetic arithmetic, const Op& op, const c10::FunctionSchema& schema,
                                     const torch::jit::Stack& stack, const Kernel& kernel) {
  for (const auto& table : {valid_products(), valid_norms(), valid_attention(), valid_images()})
    for (const ValidForm& form : table)
      if (form.op == op.name) return form.run(ValidCall{op, schema, stack, arithmetic, kernel});
  return std::nullopt;
}

}  // namespace parity

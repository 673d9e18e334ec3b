#include "onnx/operator.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {

const at::Tensor& Call::operator[](size_t input) const {
  if (!has(input)) throw Error(fmt::format("its input {} is not given", input));
  return inputs_[input];
}

std::optional<at::Scalar> Call::literal(size_t input) const {
  if (!has(input) || !constant_[input] || inputs_[input].dim() != 0) return std::nullopt;
  at::Scalar number;
  unseen([&] { number = inputs_[input].item(); });
  return number;
}

at::Scalar Call::value(size_t input) const {
  if ((*this)[input].numel() != 1) throw Error(fmt::format("its input {} is not one number", input));
  at::Scalar number;
  unseen([&] { number = inputs_[input].item(); });
  return number;
}

std::vector<int64_t> Call::integers(size_t input) const {
  const at::Tensor& tensor = (*this)[input];
  if (!at::isIntegralType(tensor.scalar_type(), /*includeBool=*/false))
    throw Error(fmt::format("its input {} is no tensor of integers", input));
  std::vector<int64_t> numbers;
  unseen([&] {
    const at::Tensor flat = tensor.to(at::kLong).contiguous();
    numbers.assign(flat.const_data_ptr<int64_t>(), flat.const_data_ptr<int64_t>() + flat.numel());
  });
  return numbers;
}

int64_t Call::integer(size_t input) const {
  const std::vector<int64_t> numbers = integers(input);
  if (numbers.size() != 1) throw Error(fmt::format("its input {} is not one number", input));
  return numbers[0];
}

const Attribute* Call::find(std::string_view attribute) const {
  const auto found = node_.attributes.find(std::string(attribute));
  return found == node_.attributes.end() ? nullptr : &found->second;
}

int64_t Call::integer(std::string_view attribute, int64_t otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr && found->integer ? *found->integer : otherwise;
}

double Call::number(std::string_view attribute, double otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr && found->number ? *found->number : otherwise;
}

std::string Call::text(std::string_view attribute, std::string otherwise) const {
  const Attribute* found = find(attribute);
  return found != nullptr && found->text ? *found->text : otherwise;
}

std::vector<int64_t> Call::integers(std::string_view attribute, std::vector<int64_t> otherwise) const {
  const Attribute* found = find(attribute);
  return found == nullptr ? otherwise : found->integers;
}

std::optional<std::vector<int64_t>> Call::integers(std::string_view attribute, size_t input) const {
  if (const Attribute* found = find(attribute)) return found->integers;
  if (has(input)) return integers(input);
  return std::nullopt;
}

int64_t axis_in(int64_t axis, int64_t rank) {
  if (axis < -rank || axis >= rank) throw Error(fmt::format("axis {} is none of {} axes", axis, rank));
  return axis < 0 ? axis + rank : axis;
}

at::Tensor from_front(const at::Tensor& indices, int64_t size) {
  bool any = false;
  unseen([&] { any = indices.lt(0).any().item<bool>(); });
  return any ? at::where(at::lt(indices, 0), at::add(indices, size), indices) : indices;
}

at::Tensor constant(const std::vector<int64_t>& numbers) {
  at::Tensor made;
  unseen([&] { made = at::tensor(numbers, at::kLong); });
  return made;
}

at::Tensor constant(const std::vector<double>& numbers) {
  at::Tensor made;
  unseen([&] { made = at::tensor(numbers, at::kDouble); });
  return made;
}

Lowering find_lowering(const Node& node) {
  if (!node.domain.empty()) return nullptr;
  for (const auto family : {arithmetic, activations, products, convolutions, norms, reductions, shapes, pieces,
                            gathering, scattering, generators, pooling, resizing})
    for (const LoweringRow& row : family())
      if (row.kind == node.kind) return row.lower;
  return nullptr;
}

}  // namespace parity::onnx

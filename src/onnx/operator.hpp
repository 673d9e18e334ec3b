// What an operator's lowering is given, and the table of all.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "onnx/model.hpp"

namespace parity::onnx {

using Tensors = std::vector<at::Tensor>;

/// One node on its inputs. Everything that is missing or does not fit throws Error; the caller says at which node.
class Call {
 public:
  Call(const Node& node, Tensors inputs, std::vector<bool> constant, int64_t opset)
      : node_(node), inputs_(std::move(inputs)), constant_(std::move(constant)), opset_(opset) {}

  size_t inputs() const { return inputs_.size(); }
  bool has(size_t input) const { return input < inputs_.size() && inputs_[input].defined(); }
  const at::Tensor& operator[](size_t input) const;
  at::Tensor or_nothing(size_t input) const { return has(input) ? inputs_[input] : at::Tensor(); }
  const Tensors& all() const { return inputs_; }

  /// The number that an input holds when the model itself says it (an initializer or constant of rank 0).
  std::optional<at::Scalar> literal(size_t input) const;
  /// The number that an input of one element holds, whatever gives it.
  at::Scalar value(size_t input) const;
  /// The integers of an input, whose number of axes does not matter. What computed them is not part of the program
  /// then.
  std::vector<int64_t> integers(size_t input) const;
  int64_t integer(size_t input) const;

  bool has(std::string_view attribute) const { return find(attribute) != nullptr; }
  int64_t integer(std::string_view attribute, int64_t otherwise) const;
  bool flag(std::string_view attribute, bool otherwise = false) const { return integer(attribute, otherwise) != 0; }
  double number(std::string_view attribute, double otherwise) const;
  std::string text(std::string_view attribute, std::string otherwise) const;
  std::vector<int64_t> integers(std::string_view attribute, std::vector<int64_t> otherwise = {}) const;
  const Attribute* find(std::string_view attribute) const;

  /// The attribute, or the input that took its place in later operator sets; nullopt when neither is given.
  std::optional<std::vector<int64_t>> integers(std::string_view attribute, size_t input) const;

  const Node& node() const { return node_; }
  int64_t opset() const { return opset_; }
  size_t outputs() const { return node_.outputs.size(); }

 private:
  const Node& node_;
  Tensors inputs_;
  std::vector<bool> constant_;  // by input: an initializer, or a Constant's
  int64_t opset_;
};

/// An axis from the front. Throws Error when there is no such axis.
int64_t axis_in(int64_t axis, int64_t rank);

/// `indices` with those from the end ("-1") counted from the front.
at::Tensor from_front(const at::Tensor& indices, int64_t size);

/// A tensor that the program does not compute.
at::Tensor constant(const std::vector<int64_t>& numbers);
at::Tensor constant(const std::vector<double>& numbers);  // float64: to be converted where it is used

/// Computes a node's outputs with ATen's ops, as the captured program is to have them.
using Lowering = Tensors (*)(const Call& call);

struct LoweringRow {
  std::string_view kind;  // ONNX's operator
  Lowering lower;
};

/// nullptr when the operator is not known.
Lowering find_lowering(const Node& node);

// The table, by family.
std::span<const LoweringRow> arithmetic();
std::span<const LoweringRow> activations();
std::span<const LoweringRow> products();
std::span<const LoweringRow> convolutions();
std::span<const LoweringRow> norms();
std::span<const LoweringRow> reductions();
std::span<const LoweringRow> shapes();
std::span<const LoweringRow> pieces();
std::span<const LoweringRow> gathering();
std::span<const LoweringRow> scattering();
std::span<const LoweringRow> generators();
std::span<const LoweringRow> pooling();
std::span<const LoweringRow> resizing();

}  // namespace parity::onnx

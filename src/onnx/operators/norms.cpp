// Normalisations.
#include "core/error.hpp"
#include "onnx/operator.hpp"

namespace parity::onnx {
namespace {

constexpr double kEpsilon = 1e-5F;  // ONNX's default, of every one

std::vector<int64_t> normalised_shape(const Call& call) {
  return call[0].sizes().slice(static_cast<size_t>(axis_in(call.integer("axis", -1), call[0].dim()))).vec();
}

// Y, and with the mean and the reciprocal deviation of each row where they are asked for. Scale and bias may be smaller
// than what they belong to, where ATen asks for all of it.
Tensors layer_norm(const Call& call) {
  const std::vector<int64_t> shape = normalised_shape(call);
  const auto whole = [&](size_t input) { return !call.has(input) || call[input].sizes() == at::IntArrayRef(shape); };
  const bool inside = whole(1) && whole(2);
  const auto given = [&](size_t input) {
    return inside && call.has(input) ? std::optional(call[input]) : std::nullopt;
  };
  auto [y, mean, deviation] =
      at::native_layer_norm(call[0], shape, given(1), given(2), call.number("epsilon", kEpsilon));
  if (!inside && call.has(1)) y = at::mul(y, call[1]);
  if (!inside && call.has(2)) y = at::add(y, call[2]);
  return {y, mean, deviation};
}

Tensors rms_norm(const Call& call) {
  const std::vector<int64_t> shape = normalised_shape(call);
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i) axes.push_back(-1 - static_cast<int64_t>(i));
  const at::Tensor mean = at::mean(at::pow(call[0], 2), axes, /*keepdim=*/true);
  const at::Tensor normed = at::mul(call[0], at::rsqrt(at::add(mean, call.number("epsilon", kEpsilon))));
  return {at::mul(normed, call[1])};
}

// Until operator set 21 one scale and bias a group, since then one a channel.
Tensors group_norm(const Call& call) {
  const int64_t groups = call.integer("num_groups", 0), channels = call[0].dim() > 1 ? call[0].size(1) : 0;
  if (groups < 1 || channels % groups != 0) throw Error("its groups do not divide its channels");
  const auto by_channel = [&](const at::Tensor& given) {
    return given.numel() == channels ? given : at::repeat_interleave(given, channels / groups);
  };
  return {at::group_norm(call[0], groups, by_channel(call[1]), by_channel(call[2]), call.number("epsilon", kEpsilon),
                         /*cudnn_enabled=*/false)};
}

// One group a channel: ATen's instance_norm repeats scale and bias for each example first.
Tensors instance_norm(const Call& call) {
  if (call[0].dim() < 2) throw Error("its input has no channels");
  return {at::group_norm(call[0], call[0].size(1), call[1], call[2], call.number("epsilon", kEpsilon),
                         /*cudnn_enabled=*/false)};
}

Tensors batch_norm(const Call& call) {
  if (call.flag("training_mode")) throw Error("it is in training mode; export the model in eval mode");
  return {at::batch_norm(call[0], call[1], call[2], call[3], call[4], /*training=*/false, /*momentum=*/0,
                         call.number("epsilon", kEpsilon), /*cudnn_enabled=*/false)};
}

Tensors lp_normalization(const Call& call) {
  const int64_t axis = axis_in(call.integer("axis", -1), call[0].dim());
  return {at::div(call[0], at::norm(call[0], call.integer("p", 2), axis, /*keepdim=*/true))};
}

constexpr LoweringRow kNormRows[] = {
    {"LayerNormalization", layer_norm},       {"RMSNormalization", rms_norm},     {"GroupNormalization", group_norm},
    {"InstanceNormalization", instance_norm}, {"BatchNormalization", batch_norm}, {"LpNormalization", lp_normalization},
};

}  // namespace

std::span<const LoweringRow> norms() { return kNormRows; }

}  // namespace parity::onnx

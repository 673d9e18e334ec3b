#include "models/umt5/self_pairs.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "ops/own.hpp"

namespace parity {
namespace {

constexpr int64_t kTextWindow = 512;  // Wan2.1, text_len; diffusers' max_sequence_length

// Tokens of each sample. Throws Error when padding stands before or inside a prompt.
std::vector<int64_t> lengths_of(const Umt5Inputs& inputs) {
  std::vector<int64_t> lengths;
  for (int64_t b = 0; b < inputs.ids.size(0); ++b) {
    const auto sees = inputs.mask.defined() ? inputs.mask[b].to(at::kBool) : at::ones({inputs.ids.size(1)}, at::kBool);
    lengths.push_back(sees.sum().item<int64_t>());
    if (!sees.slice(0, 0, lengths.back()).all().item<bool>())
      throw Error(fmt::format("[umt5] sample {} has padding before its last token: it cannot be cut", b));
  }
  return lengths;
}

// (1, tokens, dim) -> (window, dim), zeros behind `length` tokens.
at::Tensor zero_padded(const at::Tensor& y, int64_t length, int64_t window) {
  const auto out = at::zeros({window, y.size(2)}, y.options());
  out.narrow(0, 0, length).copy_(y[0].narrow(0, 0, length));
  return out;
}

}  // namespace

std::vector<SelfPair> umt5_cut_pairs(const Umt5Model& model, const Umt5Inputs& inputs) {
  NoProbe off;
  const auto lengths = lengths_of(inputs);
  const int64_t batch = inputs.ids.size(0), window = std::max(kTextWindow, inputs.ids.size(1));
  const auto ids = at::full({batch, window}, model.config().padding, inputs.ids.options());
  const auto mask = at::zeros({batch, window}, at::kLong);
  for (int64_t b = 0; b < batch; ++b) {
    ids[b].narrow(0, 0, lengths[b]).copy_(inputs.ids[b].narrow(0, 0, lengths[b]));
    mask[b].narrow(0, 0, lengths[b]).fill_(1);
  }
  const auto padded = model.forward({ids, mask}, off);
  std::vector<SelfPair> pairs;
  for (int64_t b = 0; b < batch; ++b) {
    if (lengths[b] == 0) continue;
    const auto cut = model.forward({ids.narrow(0, b, 1).narrow(1, 0, lengths[b]), {}}, off);
    pairs.push_back({fmt::format("cut/sample.{}", b), "attention",
                     zero_padded(padded.narrow(0, b, 1), lengths[b], window), zero_padded(cut, lengths[b], window)});
  }
  return pairs;
}

std::vector<SelfPair> umt5_attention_pairs(const Umt5Config& config, Precision precision, const WeightSource& weights,
                                           const Umt5Inputs& inputs) {
  std::vector<SelfPair> pairs;
  Umt5Ops ops;
  ops.attention = [&pairs](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const ScoreForm& form) {
    const auto y = ops::encoder_attention(q, k, v, form);
    pairs.push_back({fmt::format("attention/layer.{}", pairs.size()), "attention", y.contiguous(),
                     ops::own_encoder_attention(q, k, v, form).contiguous()});
    return y;
  };
  NoProbe off;
  Umt5Model(config, precision, weights, ops).forward(inputs, off);
  return pairs;
}

}  // namespace parity

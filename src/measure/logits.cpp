#include "measure/logits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "measure/blocks.hpp"

namespace parity {
namespace {

constexpr int64_t kElementsAtOnce = int64_t{1} << 22;  // 32 MiB of fp64 a side
constexpr int64_t kTop = 5;
constexpr double kInfiniteLogit = std::numeric_limits<double>::infinity();

void check(const at::Tensor& r, const at::Tensor& c) {
  if (!r.defined() || !c.defined() || r.sizes() != c.sizes() || r.dim() == 0 || r.size(-1) < 2 ||
      !at::isFloatingType(r.scalar_type()) || !at::isFloatingType(c.scalar_type()))
    throw Error("logits: two floating tensors of one shape (..., words) with at least two words are needed");
}

/// Of each token of some, (tokens) each.
struct Tokens {
  at::Tensor number;  // place among all tokens
  at::Tensor kl, log_prob_change, same, margin, allowed, reference_word, candidate_word, overlap;
};

/// r, c: (tokens, words) in fp64, finite or -Inf. `dtype`: the reference's.
Tokens measure_tokens(const at::Tensor& r, const at::Tensor& c, const at::Tensor& number, at::ScalarType dtype) {
  const at::Tensor log_p = r.log_softmax(-1), log_q = c.log_softmax(-1);
  const at::Tensor p = log_p.exp(), none = at::zeros({}, r.options());
  Tokens out;
  out.number = number;
  out.kl = at::where(p > 0, p * (log_p - log_q), none).sum(-1).clamp_min(0);  // rounding alone makes it negative
  const auto [best, words] = r.topk(std::min(kTop, r.size(-1)), -1);          // (tokens, 5)
  const auto [its_best, its_words] = c.topk(std::min(kTop, r.size(-1)), -1);
  out.reference_word = words.select(1, 0);
  out.candidate_word = its_words.select(1, 0);
  const at::Tensor first = words.narrow(1, 0, 1);  // (tokens, 1)
  out.log_prob_change = (log_q - log_p).gather(1, first).squeeze(1);
  // Equal logits have no order: every word as high as the highest is the most likely one.
  const at::Tensor leading = r >= best.narrow(1, 0, 1);
  out.same = c.masked_fill(leading.logical_not(), -kInfiniteLogit).amax(-1) >= its_best.select(1, 0);
  out.overlap = (c.gather(1, words) >= its_best.narrow(1, its_best.size(1) - 1, 1)).to(at::kDouble).mean(-1);
  out.margin = best.select(1, 0) - best.select(1, 1);
  const at::Tensor change = c - r, d = at::where(change.isfinite(), change, none);  // words that are masked out
  const at::Tensor ulp = best.select(1, 0).abs() * (2 * unit_roundoff(dtype));      // or up to twice that
  out.allowed = 2 * ulp + 2 * d.square().mean(-1).sqrt();
  return out;
}

/// Those tokens of (tokens, words) that have a distribution on both sides.
at::Tensor with_distribution(const at::Tensor& r, const at::Tensor& c) {
  const auto good = [](const at::Tensor& x) { return x.amax(-1).isfinite() & x.isnan().any(-1).logical_not(); };
  return (good(r) & good(c)).nonzero().squeeze(1);
}

double number_at(const at::Tensor& values, int64_t i) { return values[i].item<double>(); }

void set_flips(const Tokens& all, at::IntArrayRef axes, LogitStats& out) {
  const at::Tensor flips = all.same.logical_not(), beyond = flips & (all.margin > all.allowed);
  out.flips = flips.sum().item<int64_t>();
  out.flips_beyond = beyond.sum().item<int64_t>();
  if (out.flips == 0) return;
  const int64_t i = (out.flips_beyond > 0 ? beyond : flips).nonzero()[0].item<int64_t>();
  out.first_flip = TopFlip{index_of(all.number[i].item<int64_t>(), axes), all.reference_word[i].item<int64_t>(),
                           all.candidate_word[i].item<int64_t>(), number_at(all.margin, i), number_at(all.allowed, i)};
}

void summarise(const Tokens& all, at::IntArrayRef axes, LogitStats& out) {
  const int64_t worst = all.kl.argmax().item<int64_t>();
  out.kl_mean = all.kl.mean().item<double>();
  const auto rank = static_cast<int64_t>(std::ceil(.99 * static_cast<double>(all.kl.numel())));
  out.kl_p99 = std::get<0>(all.kl.kthvalue(rank)).item<double>();
  out.kl_max = number_at(all.kl, worst);
  out.worst_token = index_of(all.number[worst].item<int64_t>(), axes);
  out.log_prob_rms = all.log_prob_change.square().mean().sqrt().item<double>();
  out.same_top = all.same.to(at::kDouble).mean().item<double>();
  out.top5_overlap = all.overlap.mean().item<double>();
  set_flips(all, axes, out);
}

Tokens joined(const std::vector<Tokens>& parts) {
  Tokens all;
  for (const auto field : {&Tokens::number, &Tokens::kl, &Tokens::log_prob_change, &Tokens::same, &Tokens::margin,
                           &Tokens::allowed, &Tokens::reference_word, &Tokens::candidate_word, &Tokens::overlap}) {
    std::vector<at::Tensor> pieces;
    for (const Tokens& part : parts) pieces.push_back(part.*field);
    all.*field = at::cat(pieces);
  }
  return all;
}

}  // namespace

LogitStats measure_logits(const at::Tensor& reference, const at::Tensor& candidate) {
  check(reference, candidate);
  LogitStats out;
  out.words = reference.size(-1);
  const at::Tensor r = reference.reshape({-1, out.words}), c = candidate.reshape({-1, out.words});
  out.tokens = r.size(0);
  const int64_t step = std::max<int64_t>(1, kElementsAtOnce / out.words);
  std::vector<Tokens> parts;
  for (int64_t begin = 0; begin < out.tokens; begin += step) {
    const int64_t n = std::min(step, out.tokens - begin);
    const at::Tensor wide_r = r.narrow(0, begin, n).to(at::kDouble), wide_c = c.narrow(0, begin, n).to(at::kDouble);
    const at::Tensor kept = with_distribution(wide_r, wide_c);
    out.not_finite += n - kept.size(0);
    if (kept.size(0) > 0)
      parts.push_back(measure_tokens(wide_r.index_select(0, kept), wide_c.index_select(0, kept), kept + begin,
                                     reference.scalar_type()));
  }
  if (!parts.empty()) summarise(joined(parts), reference.sizes().slice(0, reference.sizes().size() - 1), out);
  return out;
}

}  // namespace parity

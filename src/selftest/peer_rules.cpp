#include "selftest/peer_rules.hpp"

#include <cmath>
#include <limits>

namespace parity {
namespace {

double total(const at::Tensor& t) { return t.sum().item<double>(); }

struct Tolerance {
  double relative, absolute;
};

// torch/testing/_comparison.py, _DTYPE_PRECISIONS (2.13).
Tolerance assert_close_tolerance(at::ScalarType dtype) {
  switch (dtype) {
    case at::kHalf:
      return {1e-3, 1e-5};
    case at::kBFloat16:
      return {1.6e-2, 1e-5};
    case at::kFloat:
      return {1.3e-6, 1e-5};
    case at::kDouble:
      return {1e-7, 1e-7};
    default:
      return {0, 0};  // as for a dtype without an entry
  }
}

// check_dtype is on by default; the comparison itself is isclose(actual, expected) in the tensors' own dtype.
bool assert_close(const PeerInput& in) {
  if (in.reference.scalar_type() != in.candidate.scalar_type()) return false;
  const auto [relative, absolute] = assert_close_tolerance(in.reference.scalar_type());
  return at::isclose(in.candidate, in.reference, relative, absolute).all().item<bool>();
}

bool numpy_allclose(const PeerInput& in) {
  return at::isclose(in.candidate.to(at::kDouble), in.reference.to(at::kDouble), 1e-5, 1e-8).all().item<bool>();
}

// Written as an assertion that must hold: NaN fails. Two zero vectors have cosine 0, as in torch.
template <int per_ten_thousand>
bool cosine(const PeerInput& in) {
  const at::Tensor r = in.reference.to(at::kDouble), c = in.candidate.to(at::kDouble);
  const double norms = std::sqrt(total(r * r)) * std::sqrt(total(c * c));
  return total(r * c) / std::max(norms, 1e-8) >= per_ten_thousand / 1e4;
}

// An element fails only by both; NaN counts as too large.
bool polygraphy_simple(const PeerInput& in) {
  const at::Tensor r = in.reference.to(at::kDouble), absolute = (in.candidate.to(at::kDouble) - r).abs();
  const at::Tensor relative = absolute / r.masked_fill(r == 0, std::numeric_limits<double>::epsilon()).abs();
  const auto exceeds = [](const at::Tensor& t) { return (t > 1e-5).logical_or(t.isnan()); };
  return !exceeds(absolute).logical_and(exceeds(relative)).any().item<bool>();
}

// Where the reference is 0, the machine epsilon is added to both sides. The share must exceed .999, strictly.
bool msprobe_permille(const PeerInput& in) {
  const at::Tensor zero = in.reference == 0;
  const double epsilon = zero.numel() == 0 || in.reference.scalar_type() == at::kDouble
                             ? std::numeric_limits<double>::epsilon()
                             : std::numeric_limits<float>::epsilon();
  const at::Tensor r = in.reference.to(at::kDouble) + epsilon * zero, c = in.candidate.to(at::kDouble) + epsilon * zero;
  if (r.numel() == 0) return true;
  return total(((c - r) / r).abs() < 1e-3) / static_cast<double>(r.numel()) > .999;
}

bool sglang_rel_diff(const PeerInput& in) {
  const at::Tensor r = in.reference.to(at::kDouble), c = in.candidate.to(at::kDouble);
  return 1 - 2 * total(r * c) / total(r * r + c * c) <= 1e-3;
}

// Products in float, summed in double: values near 1e20 give Inf/Inf, and the comparison is `if (err > max_err) fail`,
// which NaN passes. NaN elements and infinities on one side are looked for before.
template <int per_ten_million>
bool ggml_nmse(const PeerInput& in) {
  const at::Tensor r = in.reference.to(at::kFloat), c = in.candidate.to(at::kFloat);
  if (r.isnan().any().item<bool>() || c.isnan().any().item<bool>()) return false;
  const at::Tensor infinite = r.isinf().logical_or(c.isinf());
  if (infinite.logical_and(r != c).any().item<bool>()) return false;
  const at::Tensor difference = r - c;
  const double error = total((difference * difference).to(at::kDouble)) / total((r * r).to(at::kDouble));
  return !(error > per_ten_million / 1e7);
}

// `if (diff > t_eff) fail`, elements whose reference is not finite skipped: a NaN of the candidate passes.
bool llm_c_validate(const PeerInput& in) {
  const at::Tensor r = in.reference.to(at::kFloat), c = in.candidate.to(at::kFloat);
  const double epsilon =
      in.reference.scalar_type() == at::kBFloat16 ? .079 : double{std::numeric_limits<float>::epsilon()};
  const at::Tensor wrong = (r - c).abs() > r.abs() * epsilon + 1e-4;
  return !wrong.logical_and(r.isfinite()).any().item<bool>();
}

bool flash_attention(const PeerInput& in) {
  if (in.oracle.numel() == 0) return true;
  const auto largest = [&](const at::Tensor& t) { return (t.to(at::kDouble) - in.oracle).abs().max().item<double>(); };
  return largest(in.candidate) <= 2 * largest(in.reference);
}

// torch/_dynamo/utils.py, same() with fp64_ref, tol 1e-4, equal_nan off. The multiplier is 3 in half width, 2 in fp32,
// and 3 again below 1000 elements.
bool pytorch_same(const PeerInput& in) {
  constexpr double kTolerance = 1e-4, kLoose = 4e-2;
  if (in.reference.scalar_type() != in.candidate.scalar_type()) return false;
  if (at::allclose(in.reference, in.candidate, kTolerance, kTolerance)) return true;
  const auto has_nan = [](const at::Tensor& t) { return t.isnan().any().item<bool>(); };
  if (!has_nan(in.oracle) && !has_nan(in.candidate) && has_nan(in.reference) &&
      at::allclose(in.oracle.to(in.candidate.scalar_type()), in.candidate, kLoose, kLoose))
    return true;  // better than the reference
  const auto rmse = [&](const at::Tensor& t) { return (in.oracle - t).square().mean().sqrt().item<double>(); };
  const bool half = at::isReducedFloatingType(in.candidate.scalar_type());
  const double multiplier = half || in.oracle.numel() < 1000 ? 3 : 2;
  return rmse(in.candidate) <= multiplier * rmse(in.reference) + kTolerance / 10;
}

// R = ||t - o|| / ||r - o||, written without the division: equal errors of 0 pass.
bool neuron_ratio(const PeerInput& in) {
  const auto error = [&](const at::Tensor& t) { return (t.to(at::kDouble) - in.oracle).norm().item<double>(); };
  return error(in.candidate) <= 1.2 * error(in.reference);
}

}  // namespace

const std::vector<PeerRule>& peer_rules() {
  static const std::vector<PeerRule> rules{
      {"torch assert_close", "torch.testing.assert_close, default tolerances of the dtype", assert_close},
      {"numpy allclose", "numpy.allclose: rtol 1e-5, atol 1e-8", numpy_allclose},
      {"cosine >= 0.99", "PyTorch same(cos_similarity), Tenstorrent", cosine<9900>},
      {"cosine >= 0.995", "sglang diffusion CI, DiT", cosine<9950>},
      {"cosine >= 0.9999", "diffusers, bf16", cosine<9999>},
      {"Polygraphy simple", "CompareFunc.simple: an element fails by abs > 1e-5 and rel > 1e-5", polygraphy_simple},
      {"msprobe 1 permille", "share of elements with relative error < 1e-3 above .999", msprobe_permille},
      {"sglang rel_diff", "comparator: 1 - 2 sum(xy) / sum(x^2 + y^2) <= 1e-3", sglang_rel_diff},
      {"ggml NMSE 5e-4", "test-backend-ops, matrix products", ggml_nmse<5000>},
      {"ggml NMSE 1e-7", "test-backend-ops, default", ggml_nmse<1>},
      {"llm.c validate", "validate_result: |d| > 1e-4 + eps |reference| fails (eps 0.079 in bf16)", llm_c_validate},
      {"FlashAttention 2x", "tests: max error against the oracle <= 2 times the reference's", flash_attention},
      {"PyTorch same()", "allclose 1e-4, else RMSE against fp64 <= 2 or 3 times the reference's + 1e-5", pytorch_same},
      {"AWS Neuron R <= 1.2", "error against the oracle over the reference's own", neuron_ratio},
  };
  return rules;
}

}  // namespace parity

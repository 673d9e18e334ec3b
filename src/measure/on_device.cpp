#include "measure/on_device.hpp"

#include <array>
#include <cmath>

#include "measure/ranks.hpp"

namespace parity {
namespace {

using Format = kernels::cuda::Element;  // core/result.hpp has an Element of its own
using kernels::cuda::PairTotals;

std::optional<Format> element_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return Format::fp64;
    case at::kFloat:
      return Format::fp32;
    case at::kHalf:
      return Format::fp16;
    case at::kBFloat16:
      return Format::bf16;
    case at::kFloat8_e4m3fn:
      return Format::fp8_e4m3fn;
    case at::kFloat8_e5m2:
      return Format::fp8_e5m2;
    default:
      return std::nullopt;
  }
}

/// As for blocks on the CPU (measure.cpp). The candidate's squares are summed by themselves here, so that its norm does
/// not cancel.
bool lost_squares(const PairTotals& t) {
  return squares_lost(t.sum_rr, t.sum_r) || squares_lost(t.sum_dd, t.sum_d) || squares_lost(t.sum_cc, t.sum_c) ||
         !std::isfinite(t.sum_d) || !std::isfinite(t.sum_rc) || !std::isfinite(t.sum_dr);
}

Totals<double> totals_of(const kernels::cuda::PairResult& result) {
  const PairTotals& t = result.totals;
  Totals<double> out;
  out.max_d = t.max_d, out.sum_d = t.sum_d, out.sum_dd = t.sum_dd;
  out.sum_r = t.sum_r, out.sum_rr = t.sum_rr, out.sum_cc = t.sum_cc, out.sum_rc = t.sum_rc, out.sum_dr = t.sum_dr;
  out.finite = result.finite, out.zeros = t.zeros_reference, out.equal = t.equal;
  out.special_reference = t.special_reference, out.special_candidate = t.special_candidate;
  out.special_mismatch = t.special_mismatch;
  out.max_ulp = t.max_ulp, out.bits_known = t.bits_known;
  return out;
}

/// One value everywhere: its bits, or zeros of both signs.
bool is_constant(int64_t n, uint64_t differs, bool zeros) { return n > 1 && (differs == 0 || zeros); }

void set_percentiles(int64_t finite, const RankSource& ranks, Stats& out) {
  const QuantilePlace p95(kQuantiles[0], finite), p99(kQuantiles[1], finite);
  const auto next = [&](const QuantilePlace& p) { return std::min(p.rank + 1, finite - 1); };
  const std::vector<double> found = ranks({p95.rank, next(p95), p99.rank, next(p99)});
  out.p95_abs = p95.between({found[0], found[1]});
  out.p99_abs = p99.between({found[2], found[3]});
}

}  // namespace

std::optional<kernels::cuda::Pair> device_pair(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto r = element_of(reference.scalar_type()), c = element_of(candidate.scalar_type());
  if (!r || !c) return std::nullopt;
  return kernels::cuda::Pair{reference.const_data_ptr(), candidate.const_data_ptr(), *r, *c, reference.numel()};
}

std::optional<Stats> statistics_of(const kernels::cuda::PairResult& result, at::IntArrayRef shape,
                                   const RankSource& ranks) {
  const PairTotals& totals = result.totals;
  if (lost_squares(totals)) return std::nullopt;
  Stats out;
  out.count = c10::multiply_integers(shape);
  set_statistics_of(totals_of(result), out);
  if (result.finite > 0 && totals.bits_known) out.max_ulp = static_cast<double>(totals.max_ulp);
  if (!ranks) return out;
  out.constant_reference = is_constant(out.count, totals.differs_reference, totals.zeros_reference == out.count);
  out.constant_candidate = is_constant(out.count, totals.differs_candidate, totals.any_candidate == 0);
  if (result.finite == 0) return out;
  out.worst_reference = result.worst_reference;
  out.worst_candidate = result.worst_candidate;
  out.worst_index = index_of(totals.worst, shape);
  set_percentiles(result.finite, ranks, out);
  return out;
}

std::optional<Stats> measured_on_device(const at::Tensor& reference, const at::Tensor& candidate, bool ranked) {
  if (!reference.defined() || !candidate.defined() || !reference.is_cuda() || !candidate.is_cuda()) return std::nullopt;
  if (reference.device() != candidate.device() || reference.sizes() != candidate.sizes() || reference.numel() == 0 ||
      reference.layout() != at::kStrided || candidate.layout() != at::kStrided ||
      kernels::cuda::architectures().empty())
    return std::nullopt;
  const at::Tensor r = reference.detach().resolve_neg().contiguous(), c = candidate.detach().resolve_neg().contiguous();
  const auto pair = device_pair(r, c);
  if (!pair) return std::nullopt;
  const std::vector<double> quantiles(kQuantiles.begin(), kQuantiles.end());
  const kernels::cuda::Measurement there(*pair, r.device().index(), ranked ? quantiles : std::vector<double>());
  const RankSource ranks = [&](const std::vector<int64_t>& wanted) { return there.ranks(wanted); };
  return statistics_of(there.result(), r.sizes(), ranked ? ranks : RankSource());
}

}  // namespace parity

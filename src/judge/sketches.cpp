#include "judge/sketches.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "judge/plain.hpp"

namespace parity {
namespace {

constexpr double kErrors = 4;  // standard errors between an estimate and what is certain: one in 16000 lies further off

// An fp32 tensor in a bf16 model has bf16's errors: fp32 norms of wan.bf16 were seen at 0.005 with other kernels.
constexpr double kHalfChain = 64;  // unit roundoffs, as for the half tensors themselves

// As measure/local.hpp's: a tensor kept in a wider dtype than the other side's, all of whose numbers fit there.
at::ScalarType effective(const SketchedTensor& wide, at::ScalarType narrow) {
  const auto& fits = wide.sketch.fits;
  return std::find(fits.begin(), fits.end(), narrow) != fits.end() ? narrow : wide.dtype;
}

Stats stats_of(const Sketch& reference, const Sketch& candidate, const SketchDifference& d) {
  Stats s;
  s.count = reference.count;
  if (std::isfinite(d.rel_l2)) s.rel_l2 = d.rel_l2;
  if (s.count > 0) s.rmse = d.norm / std::sqrt(static_cast<double>(s.count));
  s.nan_reference = reference.nan + reference.inf;
  s.nan_candidate = candidate.nan + candidate.inf;
  s.zeros_reference = reference.zero;
  s.reference_norm = reference.norm();
  s.difference_norm = d.norm;
  s.constant_reference = reference.count > 1 && reference.min == reference.max;
  s.constant_candidate = candidate.count > 1 && candidate.min == candidate.max;
  if (reference.specials != candidate.specials)  // how many, the sketch cannot tell; at least the difference in number
    s.special_mismatch = std::max<int64_t>(1, std::abs(s.nan_reference - s.nan_candidate));
  return s;
}

class Judge {
 public:
  Judge(OpResult& row, const SketchedTensor& reference, const SketchedTensor& candidate, double inherited)
      : row_(row),
        inherited_(inherited),
        r_(reference),
        c_(candidate),
        d_(difference(reference.sketch, candidate.sketch)) {}

  void run() {
    row_.free = stats_of(r_.sketch, c_.sketch, d_);
    const at::ScalarType candidate = effective(c_, r_.dtype);
    PlainLimits limits = plain_limits(r_.dtype, candidate);
    limits.pass = std::max(limits.pass, is_float(r_.dtype) ? d_.floor : 0);
    limits.fail = std::max({limits.fail, limits.pass, is_float(r_.dtype) ? kHalfChain * inherited_ : 0});
    row_.limits.push_back({"free.rel_l2", limits.pass, false,
                           fmt::format("two roundings, and the {:.1e} that sums in fp64 can hide; an estimate from {} "
                                       "buckets, standard error {:.2g} %",
                                       d_.floor, d_.buckets.size(), 100 * d_.standard_error)});
    decide(limits, candidate);
  }

 private:
  void set(Verdict verdict, std::string text, Gate gate) {
    row_.verdict = verdict;
    row_.gate = gate;
    row_.diagnosis = std::move(text);
  }

  // "relative L2 0.12 ± 1.1 %: …"
  std::string measured(const PlainLimits& limits) const {
    std::string text = fmt::format("relative L2 {:.3g} ± {:.2g} %", d_.rel_l2, 100 * d_.standard_error);
    const std::string kind = sketch_diagnosis(r_.sketch, c_.sketch, d_, row_.shape, limits.pass);
    return kind.empty() ? text : text + ": " + kind;
  }

  // Relative to their share of the norm, how far the differing numbers are off; nothing when too many differ.
  double local_error() const {
    const double differing = differing_numbers(d_, r_.sketch);
    return differing > 0 ? d_.rel_l2 * std::sqrt(static_cast<double>(r_.sketch.count) / differing) : 0;
  }

  void decide(const PlainLimits& limits, at::ScalarType candidate) {
    const Stats& s = *row_.free;
    const double surely = d_.rel_l2 / (1 + kErrors * d_.standard_error),
                 possibly = d_.rel_l2 * (1 + kErrors * d_.standard_error);
    if (s.special_mismatch > 0)
      return set(Verdict::fail,
                 fmt::format("NaN or Inf at other places: reference {} NaN, {} Inf, candidate {} NaN, {} Inf",
                             r_.sketch.nan, r_.sketch.inf, c_.sketch.nan, c_.sketch.inf),
                 Gate::structure);
    if (s.count == 0) return set(Verdict::untrusted, "empty tensor", Gate::none);
    if (!std::isfinite(r_.sketch.sum_squares) || !std::isfinite(c_.sketch.sum_squares))
      return set(Verdict::untrusted, "numbers whose squares overflow fp64", Gate::none);
    if (surely > limits.fail || (!is_float(r_.dtype) && d_.norm > 0))
      return set(Verdict::fail, fmt::format("{}; more than roundings explain ({:.2g})", measured(limits), limits.fail),
                 Gate::logic);
    if (candidate != r_.dtype && is_float(r_.dtype))
      return set(Verdict::fail,
                 fmt::format("the reference is {}, the candidate {}", dtype_name(r_.dtype), dtype_name(candidate)),
                 Gate::dtype_path);
    if (possibly > limits.pass && is_float(r_.dtype))
      return set(Verdict::inconclusive,
                 fmt::format("{}; more than one rounding, less than a certain fault: record this tensor in full",
                             measured(limits)),
                 Gate::propagation);
    if (d_.rel_l2 > d_.floor && local_error() > limits.fail)
      return set(Verdict::inconclusive,
                 fmt::format("{}; small as a whole, but those are {:.2g} off, more than roundings explain",
                             measured(limits), local_error()),
                 Gate::propagation);
    if (s.constant_reference && d_.norm > 0) return set(Verdict::untrusted, "the reference is constant", Gate::none);
    set(Verdict::pass,
        fmt::format("estimated from {} buckets, ± {:.2g} %; finds relative L2 from {:.2g} on", d_.buckets.size(),
                    100 * d_.standard_error, limits.pass),
        Gate::none);
  }

  OpResult& row_;
  const double inherited_;
  const SketchedTensor &r_, &c_;
  const SketchDifference d_;
};

}  // namespace

void judge_sketches(OpResult& row, const SketchedTensor& reference, const SketchedTensor& candidate, double inherited) {
  Judge(row, reference, candidate, inherited).run();
}

}  // namespace parity

// Statistics of a pair of tensors from the sums of its blocks.
#include <fmt/format.h>

#include "core/error.hpp"
#include "measure/blocks.hpp"
#include "measure/measure.hpp"
#include "measure/on_device.hpp"
#include "measure/ranks.hpp"

namespace parity {
namespace {

// A square of a double leaves its range beyond 1e154 and below 1e-154; long double (15 bits of exponent) holds them
// all.
static_assert(std::numeric_limits<long double>::max_exponent > 2 * std::numeric_limits<double>::max_exponent + 64,
              "squares of doubles need a wider type");

/// A number that a double can hold, or none.
std::optional<double> finite(long double value) {
  const auto number = static_cast<double>(value);
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

std::optional<double> ratio(long double numerator, long double denominator) {
  return denominator > 0 ? finite(numerator / denominator) : std::nullopt;
}

/// Norms are reported even where a double overflows: then as the greatest double.
double norm(long double squares) {
  return static_cast<double>(std::min<long double>(std::sqrt(squares), std::numeric_limits<double>::max()));
}

/// Must be summed again in long double: squares have been lost (fp32 and narrower never come here, their smallest
/// square is 2e-90); or the candidate is so much smaller than the reference that its norm, which is derived from the
/// other sums, has cancelled.
bool needs_wide(const Totals<double>& t) {
  return squares_lost(t.sum_rr, t.sum_r) || squares_lost(t.sum_dd, t.sum_d) || !std::isfinite(t.sum_d) ||
         t.sum_cc < 1e-2 * t.sum_rr;
}

bool is_exact_integer(at::ScalarType dtype) { return !at::isFloatingType(dtype) && !at::isComplexType(dtype); }

/// All elements equal, by value. memcmp against the neighbour stops at the first difference.
bool constant(const at::Tensor& t) {
  if (t.numel() < 2) return false;
  const auto* p = static_cast<const char*>(t.const_data_ptr());
  const auto width = static_cast<size_t>(t.element_size());
  if (std::memcmp(p, p + width, t.nbytes() - width) == 0) return true;
  if (t.flatten()[0].item<double>() != 0) return false;
  const bool fp8 = at::isFloat8Type(t.scalar_type());                        // ATen does not count these
  return (fp8 ? t.to(at::kFloat) : t).count_nonzero().item<int64_t>() == 0;  // zeros of both signs
}

/// The first element of the block at `begin` whose difference is the greatest.
template <class T>
int64_t worst_in_block(const at::Tensor& r, const at::Tensor& c, int64_t begin) {
  const int64_t n = std::min(kBlock, r.numel() - begin);
  std::vector<T> reference(static_cast<size_t>(n)), candidate(reference.size());
  load(r, begin, n, reference.data());
  load(c, begin, n, candidate.data());
  T most = -1;
  size_t at = 0;
  for (size_t i = 0; i < reference.size(); ++i) {
    const T difference = std::abs(candidate[i] - reference[i]);
    if (!std::isfinite(reference[i]) || !std::isfinite(candidate[i]) || !(difference > most)) continue;
    most = difference;
    at = i;
  }
  return begin + static_cast<int64_t>(at);
}

/// The place of the greatest difference: the first element of that size.
template <class T>
void set_worst(const at::Tensor& shape, const at::Tensor& r, const at::Tensor& c, const Totals<T>& totals, Stats& out) {
  if (totals.worst_block < 0) return;
  const int64_t at = worst_in_block<T>(r, c, totals.worst_block);
  load(r, at, 1, &out.worst_reference);
  load(c, at, 1, &out.worst_candidate);
  out.worst_index = index_of(shape.is_complex() ? at / 2 : at, shape.sizes());
}

template <class T>
void set_statistics(const Totals<T>& t, Stats& out) {
  out.nan_reference = t.special_reference;
  out.nan_candidate = t.special_candidate;
  out.special_mismatch = t.special_mismatch;
  out.zeros_reference = t.zeros;
  if (t.bits_known && out.count > 0)
    out.bitwise_equal_share = static_cast<double>(t.equal) / static_cast<double>(out.count);
  if (t.finite == 0) return;
  const auto n = static_cast<T>(t.finite);
  out.max_abs = finite(t.max_d);
  out.mean_abs = finite(t.sum_d / n);
  out.rmse = finite(std::sqrt(t.sum_dd / n));
  out.rel_l2 = ratio(std::sqrt(t.sum_dd), std::sqrt(t.sum_rr));
  out.normalized_max = ratio(t.max_d, t.sum_r / n);
  if (t.sum_cc > 0) out.cosine = ratio(t.sum_rc, std::sqrt(t.sum_rr) * std::sqrt(t.sum_cc));
  if (out.cosine) out.cosine = std::clamp(*out.cosine, -1.0, 1.0);
  out.gain = ratio(t.sum_dr, t.sum_rr);
  out.reference_norm = norm(t.sum_rr);
  out.difference_norm = norm(t.sum_dd);
}

struct MeasuredPair {
  const at::Tensor &reference, &candidate;  // as given
  at::Tensor r, c;                          // from dense_reals
};

MeasuredPair checked(const at::Tensor& reference, const at::Tensor& candidate) {
  MeasuredPair pair{reference, candidate, dense_reals(reference, "reference"), dense_reals(candidate, "candidate")};
  if (reference.sizes() != candidate.sizes() || pair.r.sizes() != pair.c.sizes())
    throw Error(fmt::format("cannot measure tensors of different shapes: reference {} {}, candidate {} {}",
                            c10::str(reference.sizes()), c10::toString(reference.scalar_type()),
                            c10::str(candidate.sizes()), c10::toString(candidate.scalar_type())));
  return pair;
}

template <class T>
void set_all(const MeasuredPair& pair, const Totals<T>& totals, const DifferenceRanks* ranks, Stats& out) {
  set_statistics(totals, out);
  const at::ScalarType dtype = pair.reference.scalar_type();
  if (totals.finite > 0 && totals.bits_known && at::isFloatingType(dtype))
    out.max_ulp = static_cast<double>(totals.max_ulp);
  if (ranks == nullptr) return;
  set_worst(pair.reference, pair.r, pair.c, totals, out);
  if (totals.finite == 0) return;
  const auto p = ranks->percentiles(totals.finite);
  out.p95_abs = finite(p[0]);
  out.p99_abs = finite(p[1]);
}

Stats measured(const MeasuredPair& pair, bool ranked) {
  const auto &r = pair.r, &c = pair.c;
  Stats out;
  out.count = r.numel();
  if (out.count == 0) return out;
  if (!is_exact_integer(r.scalar_type()) && !is_exact_integer(c.scalar_type())) {
    DifferenceRanks ranks(false);
    const auto totals = measure_blocks<double>(r, c, ranked ? &ranks : nullptr);
    if (!needs_wide(totals)) {
      set_all(pair, totals, ranked ? &ranks : nullptr, out);
      return out;
    }
  }
  DifferenceRanks ranks(true);
  const auto totals = measure_blocks<long double>(r, c, ranked ? &ranks : nullptr);
  set_all(pair, totals, ranked ? &ranks : nullptr, out);
  return out;
}

}  // namespace

void set_statistics_of(const Totals<double>& totals, Stats& out) { set_statistics(totals, out); }

Stats measure(const at::Tensor& reference, const at::Tensor& candidate) {
  if (auto there = measured_on_device(reference, candidate, true)) return *there;
  const MeasuredPair pair = checked(reference, candidate);
  Stats out = measured(pair, true);
  if (out.count == 0) return out;
  out.constant_reference = constant(pair.r);
  out.constant_candidate = constant(pair.c);
  return out;
}

Stats measure_sums(const at::Tensor& reference, const at::Tensor& candidate) {
  if (auto there = measured_on_device(reference, candidate, false)) return *there;
  return measured(checked(reference, candidate), false);
}

}  // namespace parity

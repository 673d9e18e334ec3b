#include "weights/faults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"
#include "measure/measure.hpp"
#include "weights/rows.hpp"
#include "weights/signature.hpp"

namespace parity {
namespace {

constexpr int64_t kFaultSamples = 512;
constexpr double kFewRows = 0.25;  // share of rows up to which "these rows differ" is an explanation

using Numbers = std::vector<double>;

std::string shape_text(at::IntArrayRef shape) { return fmt::format("({})", fmt::join(shape, ", ")); }

double rounding_of(const at::Tensor& reference, const at::Tensor& candidate) {
  const double unit = std::max(unit_roundoff(reference.scalar_type()), unit_roundoff(candidate.scalar_type()));
  return std::max(unit, 0x1p-20) * 2;
}

// Median of f over the samples where it exists.
template <class F>
std::optional<double> median(const Numbers& a, const Numbers& b, F f) {
  Numbers values;
  for (size_t i = 0; i < a.size(); ++i)
    if (const double x = f(a[i], b[i]); std::isfinite(x)) values.push_back(x);
  if (values.empty()) return std::nullopt;
  std::nth_element(values.begin(), values.begin() + static_cast<ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

template <class Fits>
double share(const Numbers& a, const Numbers& b, Fits fits) {
  size_t hits = 0, told = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    told += a[i] != 0 || b[i] != 0;
    hits += (a[i] != 0 || b[i] != 0) && fits(a[i], b[i]);
  }
  return told == 0 ? 0 : static_cast<double>(hits) / static_cast<double>(told);
}

double rms(const Numbers& x) {
  double sum = 0;
  for (const double v : x) sum += std::isfinite(v) ? v * v : 0;
  return std::sqrt(sum / static_cast<double>(std::max<size_t>(1, x.size())));
}

class Examination {
 public:
  Examination(const at::Tensor& reference, const at::Tensor& candidate, const std::optional<Order>& expected)
      : r_(reference), c_(candidate), unit_(rounding_of(reference, candidate)) {
    orders_ = orders_between(c_.sizes(), r_.sizes());
    if (expected) orders_.insert(orders_.begin(), *expected);
    if (!orders_.empty()) fault_.order = orders_[0];
  }

  Fault run() {
    if (r_.numel() == 0 && c_.numel() == 0)
      is("empty", "no elements: nothing was shown", Gate::none, Verdict::untrusted);
    else if (!degenerate() && !size() && !other_order() && !affine() && !scaled_along() && !permuted())
      differing();
    return std::move(fault_);
  }

 private:
  bool is(std::string name, std::string detail, Gate gate = Gate::logic, Verdict verdict = Verdict::fail) {
    fault_.name = std::move(name), fault_.detail = std::move(detail), fault_.gate = gate, fault_.verdict = verdict;
    return true;
  }

  bool degenerate() {
    if (dtype_class(r_.scalar_type()) != dtype_class(c_.scalar_type()))
      return is("dtype",
                fmt::format("another class of numbers: reference {}, candidate {}", dtype_name(r_.scalar_type()),
                            dtype_name(c_.scalar_type())),
                Gate::structure, Verdict::shape);
    const Signature mine = signature_of(r_), theirs = signature_of(c_);
    if (theirs.count > 0 && theirs.nonfinite > mine.nonfinite)
      return is("nan", fmt::format("{} of {} elements are NaN or Inf, {} in the reference", theirs.nonfinite,
                                   theirs.count, mine.nonfinite));
    if (theirs.count == 0 || !theirs.constant() || (mine.count > 0 && mine.constant() && mine.count > 1)) return false;
    if (theirs.least == 0) return is("zero", "all zero; the reference is not: never loaded, or initialised anew");
    return theirs.count > 1 && is("constant", fmt::format("all {:.6g}; the reference is not constant: never loaded, or "
                                                          "initialised anew",
                                                          theirs.least));
  }

  // Another number of elements: does what both have agree (padding, a cut vocabulary)?
  bool size() {
    if (r_.numel() == c_.numel()) return false;
    std::string more;
    if (r_.dim() == c_.dim()) {
      at::Tensor mine = r_, theirs = c_;
      for (int64_t axis = 0; axis < r_.dim(); ++axis) {
        const int64_t common = std::min(r_.size(axis), c_.size(axis));
        mine = mine.narrow(axis, 0, common), theirs = theirs.narrow(axis, 0, common);
      }
      if (mine.numel() > 0)
        more = rounding_between(mine, theirs).found()
                   ? fmt::format(": the first {} agree (padded or cut)", shape_text(mine.sizes()))
                   : ", and what both have differs";
    }
    return is("shape",
              fmt::format("reference {}, candidate {}{}", shape_text(r_.sizes()), shape_text(c_.sizes()), more),
              Gate::structure, Verdict::shape);
  }

  // The reference, but rounded on the way or under another order than the expected one (the caller names that).
  bool other_order() {
    const auto found = find_content(r_, c_);
    if (!found) return false;
    fault_.order = found->order;
    if (auto rounded = rounding_fault(found->rounding, c_.scalar_type())) {
      rounded->order = found->order;
      fault_ = *rounded;
      return true;
    }
    return is("transposed", "holds the reference's values with the axes in another order", Gate::structure);
  }

  // candidate = g reference + b, in any order.
  bool affine() {
    const auto places = sample_places(r_.numel(), kFaultSamples);
    for (const Order& order : orders_) {
      const Numbers r = sample(r_, order.reference, places), c = sample(c_, order.candidate, places);
      const double floor = 0.05 * rms(r);
      const auto ratio = [&](double x, double y) { return std::abs(x) > floor ? y / x : NAN; };
      if (const auto g = median(r, c, ratio); g && *g != 0 && *g != 1) {
        const auto fits = [&](double x, double y) {
          return std::abs(y - *g * x) <= 4 * unit_ * std::abs(*g * x) + 1e-3 * std::abs(*g) * floor;
        };
        if (share(r, c, fits) >= 0.98 && whole(order, *g, 0)) return true;
      }
      if (const auto b = median(r, c, [](double x, double y) { return y - x; }); b && *b != 0) {
        const auto fits = [&](double x, double y) {
          return std::abs(y - x - *b) <= 4 * unit_ * (std::abs(x) + std::abs(y));
        };
        if (std::abs(*b) > 1e-3 * rms(r) && share(r, c, fits) >= 0.98 && whole(order, 1, *b)) return true;
      }
    }
    return false;
  }

  // All elements against g reference + b; names the fault when they agree.
  bool whole(const Order& order, double gain, double offset) {
    const at::Tensor r = r_.to(at::kDouble), c = in_reference_order(c_, order, r_.sizes()).to(at::kDouble);
    if (offset == 0) {
      const double square = at::dot(r.reshape({-1}), r.reshape({-1})).item<double>();
      if (square > 0) gain = at::dot(r.reshape({-1}), c.reshape({-1})).item<double>() / square;
    }
    const double size = c.norm().item<double>();
    const double rest = (c - r * gain - offset).norm().item<double>() / (size > 0 ? size : 1);
    if (!(rest <= 2 * unit_) || (offset == 0 && std::abs(gain - 1) <= 4 * unit_)) return false;
    fault_.order = order;
    const std::string fit = fmt::format("relative rest {:.1e}", rest);
    if (offset != 0) return is("offset", fmt::format("the reference plus {:.6g} everywhere ({})", offset, fit));
    if (std::abs(gain + 1) <= 2 * unit_) return is("sign flipped", fmt::format("the reference times -1 ({})", fit));
    return is("scaled", fmt::format("the reference times {:.6g} ({})", gain, fit));
  }

  // candidate = reference with a factor for each row or column, in any order.
  bool scaled_along() {
    for (const Order& order : orders_) {
      const at::Tensor c = in_reference_order(c_, order, r_.sizes());
      for (int64_t axis = 0; r_.dim() > 1 && axis < r_.dim(); ++axis) {
        const std::vector<double> factors = slice_factors(r_, c, axis, 2 * unit_);
        if (factors.empty()) continue;
        const auto [least, most] = std::minmax_element(factors.begin(), factors.end());
        fault_.order = order;
        return is(
            "scaled along an axis",
            fmt::format("{} times a factor each, {:.4g} to {:.4g}: a norm's weight or a scale that is folded into "
                        "it",
                        row_word(axis), *least, *most));
      }
    }
    return false;
  }

  bool permuted() {
    if (r_.numel() < 2 || !may_hold_the_same(signature_of(r_), signature_of(c_))) return false;
    for (const Order& order : orders_) {
      const at::Tensor c = in_reference_order(c_, order, r_.sizes());
      for (int64_t axis = 0; axis < r_.dim(); ++axis) {
        const auto found = row_permutation(r_, c, axis);
        if (!found) continue;
        const at::Tensor index = at::tensor(*found, at::kLong);
        if (!rounding_between(r_, c.index_select(axis, index)).found()) continue;
        fault_.order = order;
        const bool blocks = found->size() >= 4;
        return is(blocks ? "rows permuted" : "axis permuted", permutation_text(*found, row_word(axis)));
      }
    }
    // rounding keeps the order of numbers: sorted, both must agree
    return r_.numel() >= 4 && rounding_between(sorted(r_), sorted(c_)).found() &&
           is("shuffled",
              "the same numbers in another order, which no permutation of axes, rows or columns explains (another "
              "reshape, or interleaved parts)");
  }

  static at::Tensor sorted(const at::Tensor& t) {
    const bool narrow = at::isFloatingType(t.scalar_type()) && t.element_size() == 1;
    return std::get<0>((narrow ? t.to(at::kFloat) : t).reshape({-1}).sort());
  }

  std::string row_word(int64_t axis) const {
    if (r_.dim() == 1) return "elements";
    return axis == 0 ? "rows" : axis == 1 && r_.dim() == 2 ? "columns" : fmt::format("slices of axis {}", axis);
  }

  // Single rows, columns or elements; else nothing explains.
  void differing() {
    const Order order = best_order();
    fault_.order = order;
    const at::Tensor c = in_reference_order(c_, order, r_.sizes()), rounded = r_.to(c.scalar_type());
    const at::Tensor unlike = at::isFloatingType(c.scalar_type()) && c.element_size() == 1
                                  ? rounded.to(at::kFloat).ne(c.to(at::kFloat))
                                  : rounded.ne(c);
    const int64_t count = unlike.sum().item<int64_t>();
    for (int64_t axis = 0; axis < r_.dim(); ++axis) {
      std::vector<int64_t> others;
      for (int64_t other = 0; other < r_.dim(); ++other)
        if (other != axis) others.push_back(other);
      const at::Tensor rows = others.empty() ? unlike : unlike.sum(others).gt(0);
      const at::Tensor which = rows.nonzero().reshape({-1});
      const auto few = static_cast<double>(r_.size(axis)) * kFewRows;
      if (r_.size(axis) < 4 || which.numel() == 0 || static_cast<double>(which.numel()) > std::max(1.0, few)) continue;
      is("rows differ", fmt::format("{} of {} {} differ: {}{}; all else agrees", which.numel(), r_.size(axis),
                                    row_word(axis), first(which), which.numel() > 8 ? " …" : ""));
      return;
    }
    const Stats stats = measure(r_, c);
    is("values differ",
       fmt::format("{} of {} elements differ, relative L2 {:.2g}, cosine {:.4f}; no layout, factor, rounding or other "
                   "parameter explains it",
                   count, r_.numel(), stats.rel_l2.value_or(NAN), stats.cosine.value_or(NAN)));
  }

  static std::string first(const at::Tensor& which) {
    std::vector<int64_t> list;
    for (int64_t i = 0; i < std::min<int64_t>(8, which.numel()); ++i) list.push_back(which[i].item<int64_t>());
    return fmt::format("{}", fmt::join(list, ", "));
  }

  // In which most samples agree; the expected one when none does better.
  Order best_order() const {
    const auto places = sample_places(r_.numel(), kFaultSamples);
    const auto fits = [&](double x, double y) { return std::abs(y - x) <= 2 * unit_ * std::abs(x); };
    double most = 0.2;
    Order best = fault_.order;
    for (const Order& order : orders_) {
      const double hits = share(sample(r_, order.reference, places), sample(c_, order.candidate, places), fits);
      if (hits > most) most = hits, best = order;
    }
    return best;
  }

  const at::Tensor &r_, &c_;
  const double unit_;
  std::vector<Order> orders_;
  Fault fault_;
};

}  // namespace

Fault diagnose(const at::Tensor& reference, const at::Tensor& candidate, const std::optional<Order>& expected) {
  if (!reference.is_complex() || !candidate.is_complex()) return Examination(reference, candidate, expected).run();
  Fault fault = Examination(at::view_as_real(reference), at::view_as_real(candidate), std::nullopt).run();
  fault.order = {};
  return fault;
}

std::optional<Fault> rounding_fault(const Rounding& rounding, at::ScalarType candidate) {
  if (rounding.kept) return std::nullopt;
  Fault fault{rounding.truncated ? "truncated" : "rounded", "", Gate::dtype_path, Verdict::fail, {}};
  fault.detail = rounding.truncated ? "cut off to bf16 (towards zero) instead of rounded to nearest"
                                    : fmt::format("{}, but every value was rounded to {} on the way",
                                                  short_dtype_name(candidate), rounding.narrower);
  return fault;
}

Stats equal_stats(const at::Tensor& reference, at::ScalarType candidate) {
  Stats stats;
  stats.count = reference.numel();
  stats.bitwise_equal_share = 1;
  if (candidate != reference.scalar_type()) return stats;
  stats.max_abs = stats.mean_abs = stats.rmse = stats.p95_abs = stats.p99_abs = 0;
  return stats;
}

}  // namespace parity

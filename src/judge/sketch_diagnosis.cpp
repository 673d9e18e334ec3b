// What kind of difference it is, from sketches alone.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "judge/sketches.hpp"

namespace parity {
namespace {

constexpr double kLeft = .1;        // of the difference may be left when it is called a sign, a gain, an offset
constexpr double kMostFilled = .9;  // of the buckets may differ when elements are counted

double norm(const std::vector<double>& buckets) {
  return std::sqrt(std::inner_product(buckets.begin(), buckets.end(), buckets.begin(), 0.0));
}

// ||candidate - gain reference|| / ||reference||, exact in the sketches.
double left_after_gain(const Sketch& reference, const SketchDifference& d, double gain) {
  std::vector<double> left = folded(reference.buckets, d.buckets.size());
  for (size_t b = 0; b < left.size(); ++b) left[b] = d.buckets[b] + (1 - gain) * left[b];
  return norm(left) / reference.norm();
}

std::string gain_text(const Sketch& reference, const SketchDifference& d) {
  if (const double left = left_after_gain(reference, d, -1); left <= kLeft * d.rel_l2)
    return fmt::format("the candidate is the reference with the other sign (what is left: {:.2g})", left);
  const std::vector<double> r = folded(reference.buckets, d.buckets.size());
  const double squares = std::inner_product(r.begin(), r.end(), r.begin(), 0.0);
  if (squares == 0) return "";
  const double gain = 1 + std::inner_product(r.begin(), r.end(), d.buckets.begin(), 0.0) / squares;
  const double left = left_after_gain(reference, d, gain);
  return left > kLeft * d.rel_l2
             ? ""
             : fmt::format("the candidate is {:.6g} times the reference (what is left: {:.2g})", gain, left);
}

// By Cauchy and Schwarz a constant b obeys n b^2 = ||d||^2, and nothing else does; b is exact.
std::string offset_text(const Sketch& reference, const Sketch& candidate, const SketchDifference& d) {
  const double offset = (candidate.sum - reference.sum) / static_cast<double>(reference.count);
  const double share = static_cast<double>(reference.count) * offset * offset / (d.norm * d.norm);
  const double uncertain = 4 * std::sqrt(2 / static_cast<double>(d.buckets.size()));
  return share < 1 - uncertain - kLeft ? "" : fmt::format("a constant {:.4g} is added", offset);
}

// The exact statistics do not see where a number stands.
std::string order_text(const Sketch& r, const Sketch& c, const SketchDifference& d, double limit) {
  const double size = r.norm(), range = std::max(std::abs(r.min), std::abs(r.max));
  const auto close = [limit](double a, double b, double scale) { return std::abs(a - b) <= limit * scale; };
  if (d.rel_l2 < 10 * limit || !close(size, c.norm(), size)) return "";
  // Another order leaves the sum; otherwise it moves by about the norm.
  if (close(r.sum, c.sum, 4 * size) && close(r.min, c.min, range) && close(r.max, c.max, range))
    return "norm, mean, least and greatest number agree: the same numbers at other places (a permutation)";
  return "the norm agrees, the rest does not: rotated, or signs changed in part";
}

// One slice (index along one axis) that alone can hold the difference: all of its buckets differ.
std::string slice_text(const SketchDifference& d, double smallest, const std::vector<int64_t>& shape,
                       double differing) {
  const int64_t numbers = c10::multiply_integers(shape);
  std::string found;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const auto size = static_cast<double>(numbers / std::max<int64_t>(shape[axis], 1));
    if (shape[axis] < 2 || size < 5 || size > 3 * differing + 8 || size < .5 * differing) continue;
    const int64_t inner = c10::multiply_integers(shape.begin() + static_cast<int64_t>(axis) + 1, shape.end());
    std::vector<int64_t> hits(static_cast<size_t>(shape[axis]));
    for (int64_t i = 0; i < numbers; ++i) {
      const size_t bucket = sketch_bucket(sketch_hash(static_cast<uint64_t>(i))) & (d.buckets.size() - 1);
      hits[static_cast<size_t>(i / inner % shape[axis])] += std::abs(d.buckets[bucket]) > smallest;
    }
    const auto most = std::max_element(hits.begin(), hits.end());
    const auto alike =
        std::count_if(hits.begin(), hits.end(), [&](int64_t h) { return h > .97 * static_cast<double>(*most); });
    if (static_cast<double>(*most) > .9 * size && alike == 1)
      found += fmt::format("{}index {} of axis {}", found.empty() ? ", all in " : " or ", most - hits.begin(), axis);
  }
  return found;
}

double smallest_difference(const SketchDifference& d, const Sketch& reference) {
  return 8 * d.floor * reference.norm() / std::sqrt(static_cast<double>(d.buckets.size()));
}

std::string few_text(const Sketch& reference, const SketchDifference& d, const std::vector<int64_t>& shape) {
  const double differing = differing_numbers(d, reference);
  if (differing < 0 || differing > static_cast<double>(reference.count) / 2) return "";
  std::string text = fmt::format("about {:.0f} of {} numbers differ", std::max(1.0, differing), reference.count);
  if (c10::multiply_integers(shape) != reference.count) return text;  // complex
  return text + slice_text(d, smallest_difference(d, reference), shape, differing);
}

}  // namespace

double differing_numbers(const SketchDifference& d, const Sketch& reference) {
  const double all = static_cast<double>(d.buckets.size()), smallest = smallest_difference(d, reference);
  const auto filled = static_cast<double>(
      std::count_if(d.buckets.begin(), d.buckets.end(), [&](double b) { return std::abs(b) > smallest; }));
  return filled > kMostFilled * all ? -1 : -all * std::log1p(-filled / all);
}

std::string sketch_diagnosis(const Sketch& reference, const Sketch& candidate, const SketchDifference& d,
                             const std::vector<int64_t>& shape, double limit) {
  if (reference.norm() == 0 || d.norm == 0 || d.rel_l2 <= d.floor) return "";
  for (const std::string& text : {gain_text(reference, d), offset_text(reference, candidate, d),
                                  few_text(reference, d, shape), order_text(reference, candidate, d, limit)})
    if (!text.empty()) return text;
  return "";
}

}  // namespace parity

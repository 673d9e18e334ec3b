#include "diagnose/shard_faults.hpp"

#include <ATen/ops/cat.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "diagnose/limits.hpp"
#include "diagnose/shard_dtypes.hpp"
#include "diagnose/shard_parts.hpp"

namespace parity {
namespace {

using Found = std::optional<ShardFault>;

// Hypotheses about one tensor: each is another whole, and names what it is if it takes the difference away.
class ShardHypotheses {
 public:
  explicit ShardHypotheses(const ShardEvidence& evidence)
      : e_(evidence),
        t_(evidence.tensor),
        parts_(t_.parts()),
        whole_(join_parts(t_.grid, t_.placements, parts_)),
        off_(part_distance(whole_, e_.expected)) {
    // Of another shape, or not finite: all of the reference's value is what is missing.
    if (!std::isfinite(off_)) off_ = part_distance(at::zeros_like(e_.expected), e_.expected);
  }

  Found summed() const {
    for (const size_t a : axes(Placement::Kind::replicated)) {
      Placements sum = t_.placements;
      sum[a].kind = Placement::Kind::partial;
      if (auto fault = tried("all-reduce missing", join_parts(t_.grid, sum, parts_),
                             fmt::format("over {}: each of {} ranks has a summand of its own, and their sum is the "
                                         "reference's value",
                                         axis_name(a), axis_size(a))))
        return fault;
    }
    return std::nullopt;
  }

  // Copies of which some are right.
  ShardFault diverged() const {
    std::vector<std::string> right, wrong;
    for (const size_t a : axes(Placement::Kind::replicated))
      for (size_t i = 0; i < static_cast<size_t>(axis_size(a)); ++i)
        (e_.passes(with_copy(a, i)) ? right : wrong).push_back(fmt::format("{} {}", axis_name(a), coordinate(a, i)));
    if (right.empty())
      return {"copies differ", "what is the same on all ranks differs, and no rank has the reference's value"};
    if (wrong.empty())
      return {"copies differ by roundings", "each rank's is right, and their bits are not the same", Gate::dtype_path};
    return {"copies diverged", fmt::format("right on {}, another value on {}: other weights, inputs or random numbers",
                                           fmt::join(right, " and "), fmt::join(wrong, " and "))};
  }

  Found reordered() const {
    for (const size_t a : axes(Placement::Kind::split)) {
      const std::vector<at::Tensor> expected = parts_of_whole(e_.expected, t_.grid, t_.placements);
      const auto lines = t_.lines(a);
      if (expected.empty()) continue;
      const auto order = other_order(parts_, expected, lines);
      if (!order) continue;
      std::vector<at::Tensor> moved = parts_;
      for (const auto& line : lines)
        for (size_t i = 0; i < line.size(); ++i) moved[line[i]] = parts_[line[(*order)[i]]];
      if (auto fault = tried("rank order", join_parts(t_.grid, t_.placements, moved),
                             fmt::format("over {}: in the order {} the parts are the reference's value", axis_name(a),
                                         fmt::join(*order, ", "))))
        return fault;
    }
    return std::nullopt;
  }

  Found gathered_in_another_order() const {
    for (const size_t a : axes(Placement::Kind::replicated))
      for (int64_t d = 0; d < e_.expected.dim(); ++d) {
        const Mesh line{{{axis_name(a), axis_size(a)}}};
        const Placements split{{Placement::Kind::split, d}};
        const auto expected = parts_of_whole(e_.expected, line, split), have = parts_of_whole(whole_, line, split);
        if (expected.empty() || have.empty()) continue;
        std::vector<std::vector<size_t>> all(1);
        for (size_t i = 0; i < have.size(); ++i) all[0].push_back(i);
        const auto order = other_order(have, expected, all);
        if (!order) continue;
        std::vector<at::Tensor> moved;
        for (const size_t i : *order) moved.push_back(have[i]);
        if (auto fault =
                tried("rank order", at::cat(moved, d),
                      fmt::format("over {}: gathered along axis {}, the parts are the reference's value in the "
                                  "order {}",
                                  axis_name(a), d, fmt::join(*order, ", "))))
          return fault;
      }
    return std::nullopt;
  }

  Found gathered_along_another_axis() const {
    for (const size_t a : axes(Placement::Kind::replicated))
      for (int64_t right = 0; right < e_.expected.dim(); ++right)
        for (int64_t wrong = 0; wrong < e_.expected.dim(); ++wrong) {
          std::vector<int64_t> shape = e_.expected.sizes().vec();
          const int64_t n = axis_size(a);
          if (right == wrong || shape[right] % n != 0 || whole_.numel() != e_.expected.numel()) continue;
          shape[right] /= n, shape[wrong] *= n;
          if (auto fault = tried(
                  "gathered along another axis", at::cat(whole_.reshape(shape).chunk(n, wrong), right),
                  fmt::format("over {}: along {}, the reference's value is along {}", axis_name(a), wrong, right)))
            return fault;
        }
    return std::nullopt;
  }

  Found summed_too_often() const {
    for (const auto kind : {Placement::Kind::replicated, Placement::Kind::partial})
      for (const size_t a : axes(kind)) {
        const bool summand = kind == Placement::Kind::partial;
        if (auto fault = tried(
                "all-reduce doubled", whole_.to(at::kDouble) / axis_size(a),
                summand ? fmt::format("over {}: each rank has the whole sum already, not a summand", axis_name(a))
                        : fmt::format("over {}: the value is {} times the reference's", axis_name(a), axis_size(a))))
          return fault;
      }
    return std::nullopt;
  }

  Found bias_of_every_rank() const {
    if (!e_.vectors) return std::nullopt;
    for (const auto kind : {Placement::Kind::replicated, Placement::Kind::partial})
      for (const size_t a : axes(kind))
        for (const auto& [name, bias] : e_.vectors()) {
          if (whole_.dim() == 0 || bias.numel() != whole_.size(-1)) continue;
          const at::Tensor less = whole_.to(at::kDouble) - bias.to(at::kDouble) * (axis_size(a) - 1);
          if (auto fault = tried("bias added by every rank", less,
                                 fmt::format("over {}: without {} of the {} the value is the reference's ({})",
                                             axis_name(a), axis_size(a) - 1, axis_size(a), name)))
            return fault;
        }
    return std::nullopt;
  }

 private:
  std::vector<size_t> axes(Placement::Kind kind) const { return t_.axes(kind); }
  const std::string& axis_name(size_t a) const { return t_.mesh.axes[a].first; }
  int64_t axis_size(size_t a) const { return t_.grid.axes[a].second; }

  // In the mesh, of place `i` along axis `a` of the grid.
  int64_t coordinate(size_t a, size_t i) const { return t_.mesh.at(t_.ranks[t_.lines(a).front()[i]])[a]; }

  at::Tensor with_copy(size_t a, size_t i) const {
    std::vector<at::Tensor> parts = parts_;
    for (const auto& line : t_.lines(a)) parts[line.front()] = parts_[line[i]];
    return join_parts(t_.grid, t_.placements, parts);
  }

  Found tried(const char* name, const at::Tensor& whole, const std::string& detail) const {
    const double left = part_distance(whole, e_.expected);
    if (!(left <= (1 - kShards.whole) * off_)) return std::nullopt;
    return ShardFault{name, detail, Gate::logic, off_ > 0 ? 1 - left / off_ : 1};
  }

  const ShardEvidence& e_;
  const ShardedTensor& t_;
  const std::vector<at::Tensor> parts_;
  const at::Tensor whole_;
  double off_;
};

}  // namespace

ShardFault differing_copies(const ShardEvidence& evidence) {
  if (!joined_shape(evidence.tensor.grid, evidence.tensor.placements, evidence.tensor.shapes))
    return {"copies differ", "in their shapes", Gate::structure};
  const ShardHypotheses hypotheses(evidence);
  if (auto fault = hypotheses.summed()) return *fault;
  return hypotheses.diverged();
}

std::optional<ShardFault> wrong_whole(const ShardEvidence& evidence) {
  const ShardHypotheses hypotheses(evidence);
  for (const auto hypothesis :
       {&ShardHypotheses::reordered, &ShardHypotheses::gathered_in_another_order, &ShardHypotheses::summed_too_often,
        &ShardHypotheses::bias_of_every_rank, &ShardHypotheses::gathered_along_another_axis})
    if (auto fault = (hypotheses.*hypothesis)()) return fault;
  return narrower_part(evidence.tensor);
}

std::optional<ShardFault> wrong_shape(const ShardEvidence& evidence) {
  return ShardHypotheses(evidence).gathered_along_another_axis();
}

std::string rank_at_fault(const ShardEvidence& evidence) {
  const ShardedTensor& t = evidence.tensor;
  const std::vector<at::Tensor> expected = parts_of_whole(evidence.expected, t.grid, t.placements), parts = t.parts();
  const bool split = std::any_of(t.placements.begin(), t.placements.end(),
                                 [](const Placement& p) { return p.kind == Placement::Kind::split; });
  const bool summed = std::any_of(t.placements.begin(), t.placements.end(),
                                  [](const Placement& p) { return p.kind == Placement::Kind::partial; });
  if (!split || summed || expected.size() != parts.size()) return "";
  double all = 0, most = 0;
  size_t worst = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const double off = part_distance(parts[i], expected[i]);
    all += off;
    if (off > most) most = off, worst = i;
  }
  return most >= kShards.whole * all && most > 0 ? t.name(worst) : "";
}

}  // namespace parity

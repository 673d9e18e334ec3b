#include "pair/links.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "pair/layout_advice.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

constexpr int64_t kRowsAtOnce = 1024;

enum class NumberClass { real, complex, integer, boolean };

NumberClass class_of(at::ScalarType dtype) {
  if (dtype == at::kBool) return NumberClass::boolean;
  if (at::isComplexType(dtype)) return NumberClass::complex;
  return at::isFloatingType(dtype) ? NumberClass::real : NumberClass::integer;
}

// The layout that shapes alone allow, where only one does.
std::optional<Layout> layout_of_shapes(const std::vector<int64_t>& candidate, const std::vector<int64_t>& reference) {
  Layout layout;
  if (candidate == reference) return layout;
  if (differ_by_merged_axes(candidate, reference)) {
    layout.reshape = reference;
    return layout;
  }
  if (candidate.size() != reference.size()) return std::nullopt;
  for (const int64_t n : reference) {
    const auto at = std::find(candidate.begin(), candidate.end(), n);
    if (at == candidate.end() || (n != 1 && std::count(candidate.begin(), candidate.end(), n) > 1)) return std::nullopt;
    int64_t axis = at - candidate.begin();
    while (std::find(layout.permutation.begin(), layout.permutation.end(), axis) != layout.permutation.end()) {
      const auto next = std::find(candidate.begin() + axis + 1, candidate.end(), n);
      if (next == candidate.end()) return std::nullopt;
      axis = next - candidate.begin();
    }
    layout.permutation.push_back(axis);
  }
  return layout;
}

double steps_of(const Layout& layout) {
  const ContentLimits& limits = kPairLimits.content;
  return (layout.split || layout.slice ? limits.part_steps.value : 0) +
         (layout.permutation.empty() ? 0 : limits.permuted_steps.value) + (layout.view.empty() ? 0 : 1) +
         (layout.reshape.empty() ? 0 : 1);
}

// Samples of all rows, centred and of length 1; zeros where nothing varies.
at::Tensor unit_rows(const std::vector<const Reading*>& rows) {
  at::Tensor made = at::zeros({static_cast<int64_t>(rows.size()), static_cast<int64_t>(Reading::kSamples)});
  float* to = made.mutable_data_ptr<float>();
  for (const Reading* row : rows) {
    const auto n = static_cast<size_t>(std::min<int64_t>(row->count, Reading::kSamples));
    float mean = 0, squares = 0;
    for (size_t k = 0; k < n; ++k) mean += row->samples[k] / static_cast<float>(n);
    for (size_t k = 0; k < n; ++k) squares += (row->samples[k] - mean) * (row->samples[k] - mean);
    for (size_t k = 0; k < n && squares > 0; ++k) to[k] = (row->samples[k] - mean) / std::sqrt(squares);
    to += Reading::kSamples;
  }
  return made;  // (rows, samples)
}

// Reference tensors of names like the candidate's.
std::vector<size_t> likely(const PairingNames& names, size_t candidate) {
  const NameLimits& limits = kPairLimits.name;
  return names.like(candidate, limits.looked_up, static_cast<size_t>(limits.most_links.value));
}

struct Row {
  size_t tensor;
  const Reading* reading;
};

struct Bucket {  // readings of equal length and class
  std::vector<Row> reference, reference_orders, candidate, candidate_orders;
};

class Finder {
 public:
  Finder(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate)
      : reference_(reference), candidate_(candidate), known_(candidate.size()) {}

  Links find(const PairingNames& names) {
    std::map<std::pair<NumberClass, int64_t>, Bucket> buckets;
    for (size_t r = 0; r < reference_.size(); ++r)
      for (const Reading& reading : reference_[r].print.readings) {
        if (!reading.whole()) continue;
        Bucket& bucket = buckets[{class_of(reference_[r].dtype), reading.count}];
        (reading.as_is() ? bucket.reference : bucket.reference_orders).push_back({r, &reading});
      }
    for (size_t c = 0; c < candidate_.size(); ++c)
      for (const Reading& reading : candidate_[c].print.readings) {
        const auto bucket = buckets.find({class_of(candidate_[c].dtype), reading.count});
        if (bucket == buckets.end()) continue;
        (reading.permutation.empty() ? bucket->second.candidate : bucket->second.candidate_orders)
            .push_back({c, &reading});
      }
    for (const auto& [key, bucket] : buckets) {
      match(bucket.reference, bucket.candidate);
      match(bucket.reference, bucket.candidate_orders);
      match(bucket.reference_orders, bucket.candidate);
    }
    for (size_t c = 0; c < candidate_.size(); ++c)
      for (const size_t r : likely(names, c)) add(r, c);
    for (auto& links : links_by_candidate())
      for (Link& link : links) link.name = names.similarity(link.reference, link.candidate, &link.learned);
    return std::move(links_);
  }

 private:
  void match(const std::vector<Row>& reference, const std::vector<Row>& candidate) {
    if (reference.empty() || candidate.empty()) return;
    const auto rows_of = [](const std::vector<Row>& rows) {
      std::vector<const Reading*> readings;
      for (const Row& row : rows) readings.push_back(row.reading);
      return unit_rows(readings);
    };
    const at::Tensor r = rows_of(reference).t().contiguous(), c = rows_of(candidate);
    const int64_t most = std::min(static_cast<int64_t>(kPairLimits.content.most_links.value), r.size(1));
    for (int64_t begin = 0; begin < c.size(0); begin += kRowsAtOnce) {
      const auto [values, places] =
          at::mm(c.narrow(0, begin, std::min(kRowsAtOnce, c.size(0) - begin)), r).topk(most, 1);
      const auto value = values.accessor<float, 2>();
      const auto place = places.accessor<int64_t, 2>();
      for (int64_t i = 0; i < values.size(0); ++i)
        for (int64_t k = 0; k < most && value[i][k] >= static_cast<float>(kPairLimits.content.correlation.value); ++k)
          add(reference[static_cast<size_t>(place[i][k])].tensor, candidate[static_cast<size_t>(begin + i)].tensor);
    }
  }

  void add(size_t r, size_t c) {
    if (known_[c].count(r)) return;
    known_[c].emplace(r, true);
    links_.resize(candidate_.size());
    if (auto link = compare_content(reference_[r], candidate_[c], r, c)) links_[c].push_back(*link);
  }

  Links& links_by_candidate() {
    links_.resize(candidate_.size());
    return links_;
  }

  const std::vector<NamedTensor>&reference_, &candidate_;
  std::vector<std::unordered_map<size_t, bool>> known_;
  Links links_;
};

// The pairs of readings of as many elements, of which at most one is rearranged: whole on the reference's side.
template <class Visit>
void for_comparable_readings(const NamedTensor& ref, const NamedTensor& cand, const Visit& visit) {
  for (const Reading& theirs : ref.print.readings)
    for (const Reading& ours : cand.print.readings)
      if (theirs.whole() && ours.count == theirs.count && (theirs.permutation.empty() || ours.permutation.empty()))
        visit(theirs, ours);
}

// What two readings differ by in scale, squared: content_distance, with the whole tensors' scales, is not less.
double unlike_scales(const NamedTensor& ref, const NamedTensor& cand, const Reading& theirs, const Reading& ours) {
  const double whole = ours.whole() ? scale_disagreement(ref.print.rms, cand.print.rms) : 0;
  return whole + scale_disagreement(theirs.scale, ours.scale);
}

}  // namespace

std::optional<Link> compare_content(const NamedTensor& ref, const NamedTensor& cand, size_t r, size_t c) {
  if (class_of(ref.dtype) != class_of(cand.dtype)) return std::nullopt;
  const ContentLimits& limits = kPairLimits.content;
  Link best{r, c, 1, 0, 0, false, {}};
  bool possible = false;
  const auto plain = layout_of_shapes(cand.shape, ref.shape);
  // Of many rearrangements one is always a little alike.
  const double by_chance = std::sqrt(1 - limits.correlation.value);
  if (plain) {
    best.layout = *plain;
    possible = true;
    if (!ref.print.readings.empty() && !cand.print.readings.empty())  // compared, and found unlike, unless one is below
      best.weight = content_weight(ref.print.readings[0], cand.print.readings[0], 1);
  }
  double cost = 1;
  for_comparable_readings(ref, cand, [&](const Reading& theirs, const Reading& ours) {
    if (unlike_scales(ref, cand, theirs, ours) >= cost * cost) return;
    double distance = content_distance(theirs, ours);
    if (ours.whole())
      distance =
          std::min<double>(1, std::sqrt(distance * distance + scale_disagreement(ref.print.rms, cand.print.rms)));
    if (distance > limits.no_layout || distance >= cost) return;
    const Layout layout = layout_between(ours, cand.shape, theirs, ref.shape);
    if (plain && distance > by_chance && steps_of(layout) > steps_of(*plain)) return;
    const double whole = distance + limits.step * steps_of(layout);
    if (whole >= cost) return;
    cost = whole;
    best = {r, c, distance, content_weight(theirs, ours, distance), 0, false, layout};
    possible = true;
  });
  return possible ? std::optional(best) : std::nullopt;
}

std::optional<Layout> likeliest_layout(const NamedTensor& ref, const NamedTensor& cand) {
  std::optional<Layout> likeliest;
  double least = 1;
  for_comparable_readings(ref, cand, [&](const Reading& theirs, const Reading& ours) {
    const double distance = ours.whole() ? content_distance(theirs, ours) : 1;
    if (distance >= least) return;
    least = distance;
    likeliest = layout_between(ours, cand.shape, theirs, ref.shape);
  });
  return likeliest;
}

bool is_near(const NamedTensor& ref, const NamedTensor& cand, double distance) {
  if (class_of(ref.dtype) != class_of(cand.dtype)) return false;
  bool found = false;
  for_comparable_readings(ref, cand, [&](const Reading& theirs, const Reading& ours) {
    found = found || (unlike_scales(ref, cand, theirs, ours) <= distance * distance &&
                      content_distance(theirs, ours) <= distance);
  });
  return found;
}

bool same_content(const NamedTensor& reference, const NamedTensor& candidate) {
  const auto link = compare_content(reference, candidate);
  return link && link->distance <= kPairLimits.content.same;
}

Links find_links(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                 const PairingNames& names) {
  return Finder(reference, candidate).find(names);
}

void renew_names(const std::vector<NamedTensor>& reference, const std::vector<NamedTensor>& candidate,
                 const PairingNames& names, Links& links) {
  for (size_t c = 0; c < links.size(); ++c) {
    for (const size_t r : likely(names, c)) {
      const bool known =
          std::any_of(links[c].begin(), links[c].end(), [r](const Link& link) { return link.reference == r; });
      if (known) continue;
      if (auto link = compare_content(reference[r], candidate[c], r, c)) links[c].push_back(*link);
    }
    for (Link& link : links[c]) {
      link.name = names.similarity(link.reference, c, &link.learned);
      if (link.learned && link.distance > kPairLimits.name.layout)
        if (const auto layout = names.learned_layout(link.reference, c)) link.layout = *layout;
    }
  }
}

}  // namespace parity

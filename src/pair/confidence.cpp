#include "pair/confidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "pair/limits.hpp"

namespace parity {
namespace {

// 0 at `from`, 1 at `to` and past it.
double linear(double x, double from, double to) { return std::clamp<double>((x - from) / (to - from), 0, 1); }

// Distance of the contents of two tensors of one list, whatever their layouts.
double between(const NamedTensor& a, const NamedTensor& b) {
  double least = 1;
  for (const auto& [x, y] : {std::pair{&a, &b}, std::pair{&b, &a}})
    for (const Reading& reading : y->print.readings)
      if (!x->print.readings.empty() && reading.whole())
        least = std::min(least, content_distance(x->print.readings[0], reading));
  return least;
}

}  // namespace

double agreement(const Link& link) {
  const ContentLimits& limits = kPairLimits.content;
  return link.weight * linear(link.distance, limits.unlike, limits.same);
}

double firmness(const Link& link) {
  const EvidenceLimits& limits = kPairLimits.evidence;
  return std::max(agreement(link), linear(link.name, limits.firm_name_from, limits.firm_name));
}

LinkWeigher::Rivals LinkWeigher::rivals_of(const Link& link) const {
  const EvidenceLimits& limits = kPairLimits.evidence;
  const auto distance_of = [&](const Link& l) { return std::max<double>(l.distance, limits.least_distance); };
  Rivals rivals;
  const double own = distance_of(link);
  const auto against = [&](const Link& other, double apart) {
    if (apart <= limits.apart * std::min(own, other.distance) + limits.least_distance)
      return false;  // not to be told apart
    rivals.distinct = std::min(rivals.distinct, linear(own / distance_of(other), 1, limits.far_better));
    return true;
  };
  for (const Link& other : links_[link.candidate]) {
    if (other.reference == link.reference || agreement(other) == 0) continue;
    if (is_part(other) && !is_part(link)) continue;  // the reference has the parts as well
    if (against(other, between(reference_[link.reference], reference_[other.reference]))) continue;
    ++rivals.equal;
    if (other.name > link.name - limits.similar_twin) rivals.named = false;
  }
  for (const Link* other : by_reference_[link.reference])
    if (other->candidate != link.candidate && agreement(*other) > 0 && is_part(*other) <= is_part(link))
      against(*other, between(candidate_[link.candidate], candidate_[other->candidate]));
  return rivals;
}

// Content, name and order as independent witnesses, each with a chance to be wrong.
Confidence LinkWeigher::of(const Link& link, double order, double noise) const {
  const EvidenceLimits& limits = kPairLimits.evidence;
  const Rivals rivals = rivals_of(link);
  const double agrees = agreement(link), equals = rivals.equal == 0 || rivals.named ? 1 : limits.unnamed_twin.value;
  const double content = agrees * rivals.distinct * equals;
  // An error does not heal downstream: far from its neighbours' noise it is not a counterpart, unless its name says so;
  // and where a fault has blurred everything, look-alikes abound.
  const bool doubtful =
      link.name < limits.telling && (link.distance > limits.off_noise * std::max<double>(noise, limits.least_noise) ||
                                     link.distance > limits.look_alike);
  double name = link.name, in_order = order;
  // the n-th op of a kind in one program is not the n-th in another
  if (!link.learned && link.distance > limits.op_content &&
      (names_.is_op(0, link.reference) || names_.is_op(1, link.candidate)))
    name = std::min<double>(name, limits.op_name);
  if (content < limits.content_speaks && name < limits.telling) in_order = 0;
  if (content < limits.content_speaks && name < limits.telling_alone) name *= limits.weak_name;
  double confidence = 1 - (1 - limits.content * content) * (1 - limits.name * name) * (1 - limits.order * in_order);
  if (doubtful || (agrees < limits.silent && !link.learned && name_is_ambiguous(link)))
    confidence = std::min<double>(confidence, limits.doubtful);
  if (agrees < limits.silent && is_part(link) && !link.learned)  // a name alone says nothing of parts
    confidence = std::min<double>(confidence, limits.doubtful);
  if (agrees < limits.silent)
    confidence = std::min<double>(confidence, link.learned ? limits.by_learned_name : limits.by_name);
  return {confidence, evidence(link, order, rivals), rivals.equal > 0 && !rivals.named};
}

// Is another name of either list as like, and of a shape that fits?
bool LinkWeigher::name_is_ambiguous(const Link& link) const {
  const auto rival = [&link](const Link& other) {
    return (other.reference != link.reference || other.candidate != link.candidate) && !is_part(other) &&
           other.name > link.name - kPairLimits.evidence.ambiguous;
  };
  const auto& of_reference = by_reference_[link.reference];
  return std::any_of(links_[link.candidate].begin(), links_[link.candidate].end(), rival) ||
         std::any_of(of_reference.begin(), of_reference.end(), [&](const Link* other) { return rival(*other); });
}

std::string LinkWeigher::evidence(const Link& link, double order, const Rivals& rivals) {
  const EvidenceLimits& limits = kPairLimits.evidence;
  const double concordance = 1 - link.distance * link.distance;
  std::string text = link.weight < limits.silent ? std::string("content says nothing")
                     : agreement(link) > limits.silent
                         ? fmt::format("content {:.4f}", std::min<double>(concordance, 1))
                         : fmt::format("content differs ({:.2f})", std::max<double>(concordance, 0));
  if (rivals.equal) text += fmt::format(" (as in {} other{})", rivals.equal, rivals.equal > 1 ? "s" : "");
  text += order >= limits.content_speaks ? ", order" : ", out of order";
  if (link.learned)
    text += ", name learned";
  else if (link.name >= limits.said)
    text += fmt::format(", name {:.2f}", link.name);
  return text;
}

}  // namespace parity

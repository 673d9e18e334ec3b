#include "pair/trial_places.hpp"

#include <algorithm>
#include <set>

#include "pair/limits.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

std::vector<std::pair<size_t, size_t>> known_pairs(const PortPairing& pairing, const std::vector<size_t>& free) {
  std::vector<std::pair<size_t, size_t>> known;
  for (const PortPair& pair : pairing.pairs)
    if (!std::binary_search(free.begin(), free.end(), pair.candidate))
      known.emplace_back(pair.boundary, pair.candidate);
  return known;
}

}  // namespace

TrialPlaces::TrialPlaces(const TrialScene& scene)
    : scene_(scene),
      paired_(scene.reference.boundaries.size(), nullptr),
      direct_(scene.reference.marked_ancestors(std::vector<bool>(paired_.size(), true))),
      order_(scene.reference, known_pairs(scene.pairing, {})) {
  for (const PortPair& pair : scene.pairing.pairs) paired_[pair.boundary] = &pair;
  find_free();
  find_troubled();
}

// Is it inside a module that has no counterpart for its result? A norm without its gain gives what the reference has
// before the gain, a linear layer without its bias the product, with batch and tokens as one axis.
bool TrialPlaces::inside_unpaired(size_t b) const {
  const std::string& path = boundary(b).path;
  if (!is_op_path(path)) return false;
  const auto module = scene_.reference.find(module_of(path), boundary(b).call);
  return module && *module > b && !paired_[*module] && boundary(*module).comparable &&
         boundary(*module).value.id != boundary(b).value.id &&
         boundary(*module).value.elements() == boundary(b).value.elements();
}

// What is unpaired, and what repeats an earlier value: under a second name of that, or after all that is computed
// from it. A stale value of the layer before looks so, and a block's result that lacks its residual.
void TrialPlaces::find_free() {
  free_ = scene_.pairing.unmatched;
  std::set<int64_t> known;  // values that an earlier pair stands for
  for (const PortPair& pair : scene_.pairing.pairs) {
    const bool op = is_op_path(boundary(pair.boundary).path),
               again = !known.insert(boundary(pair.boundary).value.id).second;
    if (!pair.evidence.starts_with("content") ||
        !(again || inside_unpaired(pair.boundary) || (op && !order_.possible(pair.boundary, pair.candidate))))
      continue;
    free_.push_back(pair.candidate);
    repeats_ = true;
  }
  std::sort(free_.begin(), free_.end());
  order_ = PairingOrder(scene_.reference, known_pairs(scene_.pairing, free_));
}

// How far pairs are off by rounding: the median, as most of a port is right.
double TrialPlaces::most_off() const {
  std::vector<double> off;
  for (const auto& [b, distance] : scene_.off) off.push_back(distance);
  if (off.empty()) return 0;
  const auto middle = off.begin() + static_cast<ptrdiff_t>(off.size() / 2);
  std::nth_element(off.begin(), middle, off.end());
  const EvidenceLimits& evidence = kPairLimits.evidence;
  return std::clamp<double>(evidence.off_noise * *middle, evidence.least_noise, kPairLimits.family.agrees);
}

void TrialPlaces::find_troubled() {
  const auto most = static_cast<size_t>(kPairLimits.trial.ends);
  const double most_off = this->most_off();
  std::vector<Trouble> known;
  for (size_t b = 0; b < paired_.size() && troubled_.size() < most; ++b) {
    const auto off = scene_.off.find(b);
    const std::string& path = boundary(b).path;
    const bool result = (path.empty() || path.starts_with("[")) && boundary(b).comparable &&
                        at::isFloatingType(boundary(b).value.dtype);
    if (paired_[b] ? off == scene_.off.end() || off->second > most_off : result && !order_.known_by_another_name(b))
      if (Trouble trouble{b, unpaired_before(b)}; !trouble.before.empty())
        (scene_.vouched.contains(b) && !repeats_ ? known : troubled_).push_back(std::move(trouble));
  }
  if (known.size() > most) known.resize(most);
  std::move(known.begin(), known.end(), std::back_inserter(troubled_));
}

// The earliest first; modules before ops of the same place.
std::vector<size_t> TrialPlaces::unpaired_before(size_t end) const {
  std::vector<bool> needed(paired_.size(), false);
  needed[end] = true;
  for (size_t b = end + 1; b-- > 0;)
    if (needed[b] && (b == end || !paired_[b]))
      for (const size_t a : direct_[b]) needed[a] = true;
  std::vector<size_t> found;
  for (size_t b = 0; b < end; ++b)
    if (needed[b] && !paired_[b] && boundary(b).comparable && scene_.here.find(b) &&
        at::isFloatingType(boundary(b).value.dtype) && !order_.known_by_another_name(b))
      found.push_back(b);
  return found;
}

}  // namespace parity

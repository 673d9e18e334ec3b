#include "pair/trial_places.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/precision.hpp"
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
  find_ends();
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
double TrialPlaces::usual_off() const {
  std::vector<double> off;
  for (const auto& [b, distance] : scene_.off) off.push_back(distance);
  if (off.empty()) return 0;
  const auto middle = off.begin() + static_cast<ptrdiff_t>(off.size() / 2);
  std::nth_element(off.begin(), middle, off.end());
  return *middle;
}

// Where most values are the same to the last bit, the others are off by more than that: a narrow dtype's rounding,
// which is looked at after all that is certainly more.
TrialPlaces::End TrialPlaces::end_at(size_t b, double usual) const {
  if (!paired_[b]) {
    const std::string& path = boundary(b).path;
    const bool result = is_model_result(path) && boundary(b).comparable && at::isFloatingType(boundary(b).value.dtype);
    return result && !order_.known_by_another_name(b) ? End::off : End::none;
  }
  const auto off = scene_.off.find(b);
  const auto exceeds = [&](double rounding) {
    const EvidenceLimits& evidence = kPairLimits.evidence;
    return off == scene_.off.end() || off->second > std::clamp<double>(evidence.off_noise * rounding,
                                                                       evidence.least_noise, kPairLimits.family.agrees);
  };
  const double rounding = unit_roundoff(boundary(b).value.dtype) / 2;  // about its rms, relative
  if (!exceeds(usual)) return End::none;
  if (scene_.vouched.contains(b) && !repeats_) return End::known;
  return exceeds(std::max(usual, rounding)) ? End::off : End::rounded;
}

void TrialPlaces::find_ends() {
  const double usual = usual_off();
  std::map<End, std::vector<size_t>> ends;
  for (size_t b = 0; b < paired_.size(); ++b) ends[end_at(b, usual)].push_back(b);
  for (const End kind : {End::off, End::rounded, End::known})
    ends_.insert(ends_.end(), ends[kind].begin(), ends[kind].end());
}

void TrialPlaces::for_each_trouble(const std::function<bool(const Trouble& trouble)>& visit) const {
  for (const size_t end : ends_)
    if (const Trouble trouble{end, unpaired_before(end)}; !trouble.before.empty() && !visit(trouble)) return;
}

std::vector<Trouble> TrialPlaces::troubled() const {
  std::vector<Trouble> first;
  for_each_trouble([&](const Trouble& trouble) {
    first.push_back(trouble);
    return first.size() < static_cast<size_t>(kPairLimits.trial.ends);
  });
  return first;
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

#include "pair/trials.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "pair/limits.hpp"
#include "pair/links.hpp"
#include "pair/only_between.hpp"
#include "pair/other_shape.hpp"
#include "pair/part_on_pairs.hpp"
#include "pair/segments.hpp"
#include "pair/siblings.hpp"
#include "pair/trial_places.hpp"
#include "pair/trial_score.hpp"
#include "pair/usual_layouts.hpp"
#include "trace/path.hpp"

namespace parity {
namespace {

class TrialSearch {
 public:
  TrialSearch(const TrialScene& scene, double& work)
      : scene_(scene),
        work_(work),
        places_(scene),
        usual_(scene.pairing, scene.reference, scene.candidate),
        score_(scene, places_),
        work_of_ops_(work_of_ops(scene.reference)),
        followed_modules_(static_cast<int>(limits_.followers) * modules_to_a_tensor()) {}

  std::vector<PortPair> run() {
    std::vector<PortPair> pairs;
    int searched = 0;
    places_.for_each_trouble([&](const Trouble& trouble) {
      const int before = tried_;
      pairs = search(trouble);
      searched += tried_ > before;  // where nothing fits there is nothing to search
      return pairs.empty() && work_ >= 0 && searched < limits_.ends;
    });
    if (!pairs.empty()) return pairs;
    if (auto pair = only_one_between(scene_, places_)) return {*pair};
    if (auto pair = first_of_other_shape(scene_, places_)) return {*pair};
    return {};
  }

 private:
  std::vector<PortPair> search(const Trouble& trouble) {
    std::vector<Trial> found;
    for (const bool ops : {false, true})  // a port that records little records what modules return
      try_before(trouble, ops, found);
    if (!found.empty()) return pairs_of(cause_of(found));
    const auto siblings = try_siblings(trouble);
    return siblings ? pairs_of(*siblings) : std::vector<PortPair>();
  }

  // How far apart the port's tensors lie: one that recorded what each block returns has the next behind a block's
  // modules, of which one with cross attention has more than are followed else.
  int modules_to_a_tensor() const {
    const auto modules = std::ranges::count_if(scene_.reference.boundaries, [](const Boundary& boundary) {
      return boundary.comparable && !is_op_path(boundary.path);
    });
    return std::max(1, static_cast<int>(modules / static_cast<ptrdiff_t>(scene_.candidate.size() + 1)));
  }

  bool holds(const Trial& trial, double agree) const {
    return trial.agree() >= agree && trial.gain >= limits_.sure_gain * trial.agree();
  }
  bool is_sure(const Trial& trial) const { return holds(trial, limits_.sure); }

  // The boundaries in turn, up to one that is sure.
  void try_before(const Trouble& trouble, bool ops, std::vector<Trial>& found) {
    int tried = 0;
    for (const size_t b : trouble.before) {
      if (work_ < 0 || std::ranges::any_of(found, [&](const Trial& t) { return is_sure(t); })) return;
      if (is_op_path(boundary(b).path) != ops) continue;
      std::vector<std::vector<Placed>> trials;
      for (Placed& placed : fitting(b)) trials.push_back({std::move(placed)});
      if (trials.empty()) continue;
      if (++tried > limits_.boundaries) return;
      if (auto trial = best_of(trials)) found.push_back(std::move(*trial));
    }
  }

  // Where one alone gains nothing: the others are wrong, too.
  std::optional<Trial> try_siblings(const Trouble& trouble) {
    for (const std::vector<size_t>& siblings : siblings_among(scene_.reference, places_.direct(), trouble.before)) {
      std::vector<std::vector<Placed>> fits;
      for (const size_t b : siblings) fits.push_back(fitting(b));
      if (auto trial = best_of(in_a_row(fits))) return trial;
    }
    return std::nullopt;
  }

  // The earliest trial that the best follows from, or that is certain by itself: rounding grows on the way, and what
  // lies nearer to the end explains more of it.
  const Trial& cause_of(const std::vector<Trial>& found) const {
    const Trial* best = &found.front();
    for (const Trial& trial : found)
      if (trial.gain > limits_.clearly * best->gain) best = &trial;
    const auto is_cause = [&](const Trial& earlier) {
      if (earlier.puts(best->candidate())) return false;  // it is one of the two
      if (earlier.agree() >= limits_.certain) return holds(earlier, limits_.certain);
      const auto follows = earlier.agreeing.find(best->candidate());
      return follows != earlier.agreeing.end() &&
             boundary(follows->second).value.id == boundary(best->boundary()).value.id;
    };
    const Trial* cause = best;
    for (const Trial& trial : found)
      if (trial.boundary() < cause->boundary() && is_cause(trial)) cause = &trial;
    return *cause;
  }

  const Boundary& boundary(size_t b) const { return scene_.reference.boundaries[b]; }

  // The next boundaries that move with these, up to the pairs that cut them off: ops, and modules, of which a port may
  // have the results alone (a quantiser's two hundred ops can lie between two of them).
  std::vector<size_t> followers(const std::vector<Placed>& placed) const {
    std::vector<bool> moves(places_.count(), false), is_placed(places_.count(), false);
    std::set<int64_t> values;
    for (const Placed& one : placed) {
      moves[one.boundary] = is_placed[one.boundary] = true;
      values.insert(boundary(one.boundary).value.id);
    }
    std::vector<size_t> found;
    int left[] = {followed_modules_, static_cast<int>(limits_.followers)};  // modules, ops
    for (size_t t = placed.front().boundary + 1; t < places_.count() && (left[0] > 0 || left[1] > 0); ++t) {
      for (const size_t a : places_.direct()[t])
        moves[t] = moves[t] || (moves[a] && (is_placed[a] || !places_.paired(a)));
      const bool op = is_op_path(boundary(t).path);
      if (moves[t] && boundary(t).comparable && scene_.here.find(t) && !values.contains(boundary(t).value.id) &&
          left[op]-- > 0)
        found.push_back(t);
    }
    return found;
  }

  PartOnPairs part_to(const std::vector<size_t>& targets, const std::vector<Placed>& placed) const {
    std::vector<bool> marked(places_.count(), false);
    for (size_t i = 0; i < places_.count(); ++i) marked[i] = places_.paired(i) != nullptr;
    for (const Placed& one : placed) marked[one.boundary] = true;
    for (const size_t t : targets) marked[t] = true;
    return part_on_pairs(scene_.reference, marked, targets, work_of_ops_);
  }

  // All of the same boundaries.
  std::optional<Trial> best_of(const std::vector<std::vector<Placed>>& trials) {
    if (trials.empty()) return std::nullopt;
    const std::vector<size_t> targets = followers(trials.front());
    if (targets.empty()) return std::nullopt;
    ReplayOptions options;
    const PartOnPairs part = part_to(targets, trials.front());
    options.part = part.part;
    for (const size_t a : part.needed)
      if (places_.paired(a) != nullptr)
        if (auto value = score_.theirs(*places_.paired(a))) options.given[boundary(a).value.id] = *value;
    std::optional<Trial> best;
    for (const std::vector<Placed>& placed : trials) {
      ++tried_;
      work_ -= part.work;
      if (!give(placed, options)) continue;
      Trial trial{placed};
      score_.add(trial, options);
      if (trial.agree() > 0 && trial.gain >= limits_.least_gain && (!best || trial.gain > limits_.clearly * best->gain))
        best = trial;
      if (work_ < 0 || (best && is_sure(*best))) break;
    }
    return best;
  }

  bool give(const std::vector<Placed>& placed, ReplayOptions& options) const {
    for (const Placed& one : placed) {
      const Value& value = boundary(one.boundary).value;
      const auto theirs = one.layout.as_shape(scene_.candidate[one.candidate].load(), value.shape);
      if (!theirs) return false;
      options.given[value.id] = *theirs;
    }
    return true;
  }

  // Free tensors of the candidate that may be b, the nearest after what b is computed from first.
  std::vector<Placed> fitting(size_t b) const {
    std::vector<Placed> fits;
    for (const size_t c : places_.free()) {
      if (fits.size() >= static_cast<size_t>(limits_.candidates)) break;
      const NamedTensor *here = scene_.here.find(b), *there = scene_.there.find(c);
      if (there == nullptr || !places_.order().possible(b, c)) continue;
      const auto link = compare_content(*here, *there);
      if (link && !is_part(*link)) fits.push_back({b, c, layout_of(*link, *here, *there)});
    }
    return fits;
  }

  // Of values that are unlike, the order of axes that is least so is chance.
  Layout layout_of(const Link& link, const NamedTensor& here, const NamedTensor& there) const {
    if (link.distance <= kPairLimits.content.same) return link.layout;
    if (const auto usual = usual_.layout(here.shape, there.shape)) return *usual;
    return here.shape == there.shape ? Layout() : link.layout;
  }

  std::vector<PortPair> pairs_of(const Trial& trial) const {
    const std::string evidence =
        fmt::format("a trial: {} later values agree with the port's when the program goes on from {}", trial.agree(),
                    trial.placed.size() == 1 ? "it" : "it and its siblings");
    std::vector<PortPair> pairs;
    for (const Placed& one : trial.placed)
      pairs.push_back({one.boundary, one.candidate, one.layout, limits_.confidence, evidence, 1});
    return pairs;
  }

  const TrialLimits& limits_ = kPairLimits.trial;
  const TrialScene& scene_;
  double& work_;
  const TrialPlaces places_;
  const UsualOrders usual_;
  const TrialScore score_;
  const std::vector<double> work_of_ops_;
  const int followed_modules_;
  int tried_ = 0;
};

}  // namespace

bool comes_out(const std::map<size_t, double>& off, size_t boundary) {
  const auto found = off.find(boundary);
  return found != off.end() && found->second <= kPairLimits.family.agrees;
}

std::vector<PortPair> pairs_on_trial(const TrialScene& scene, double& work) {
  if (work < 0) return {};
  return TrialSearch(scene, work).run();
}

}  // namespace parity

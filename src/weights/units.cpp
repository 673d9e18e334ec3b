#include "weights/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/dtype_kind.hpp"
#include "weights/rows.hpp"

namespace parity {
namespace {

constexpr int64_t kUnitSamples = 128, kLeastSimilar = 32;  // elements
constexpr double kSimilar = 0.9;    // correlation; that of 32 unrelated samples exceeds it once in 1e12
constexpr int64_t kLeastFused = 8;  // elements: smaller tensors are found in larger ones by chance

// One side with what is known of its tensors.
struct Known {
  const WeightSide& side;
  std::vector<ParameterName> names;
  std::vector<Signature> signatures;
  std::vector<bool> matched, similar;                  // whole
  std::map<size_t, std::vector<Slice>> slices;         // of fused tensors, ascending, without gaps
  std::map<std::pair<size_t, int64_t>, RowSums> sums;  // by tensor and axis

  const Parameter& parameter(size_t i) const { return side.parameters()[i]; }
  size_t count() const { return side.parameters().size(); }
  const RowSums& rows(size_t tensor, int64_t axis) {
    const auto [at, fresh] = sums.try_emplace({tensor, axis});
    if (fresh) at->second = row_sums(side.load(tensor), axis);
    return at->second;
  }
  bool open(size_t i) const {
    return !matched[i] && is_float(parameter(i).dtype) && parameter(i).count() >= kLeastFused;
  }
};

Known look_at(const WeightSide& side, const AuditProgress& progress) {
  Known known{side, {}, {}, {}, {}, {}, {}};
  std::vector<std::string> paths;
  for (size_t i = 0; i < side.parameters().size(); ++i) {
    progress("reading " + side.parameters()[i].name);
    paths.push_back(side.parameters()[i].name);
    known.signatures.push_back(signature_of(side.load(i)));
  }
  known.names = parameter_names(paths);
  known.matched.assign(paths.size(), false);
  known.similar.assign(paths.size(), false);
  return known;
}

Unit whole(const Known& known, size_t tensor) {
  return {tensor, std::nullopt, known.parameter(tensor).shape, known.signatures[tensor].constant(),
          known.names[tensor]};
}

class Search {
 public:
  Search(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress)
      : r_(look_at(reference, progress)), c_(look_at(candidate, progress)), progress_(progress) {}

  Units run() {
    match_whole();
    match_similar();
    find_parts(r_, c_);
    find_parts(c_, r_);
    for (Known* known : {&r_, &c_}) spread_parts(*known), add_units(*known);
    for (const auto& [r, c, content] : whole_)
      units_.held.push_back({first_unit_[0].at(r), first_unit_[1].at(c), content});
    for (const auto& [r, c, content] : similar_)
      if (!r_.slices.contains(r) && !c_.slices.contains(c))
        units_.similar.push_back({first_unit_[0].at(r), first_unit_[1].at(c), content});
    match_parts();
    return std::move(units_);
  }

 private:
  struct Whole {
    size_t reference, candidate;
    Content content;
  };

  void match_whole() {
    std::vector<std::pair<double, size_t>> by_square;
    for (size_t c = 0; c < c_.count(); ++c) by_square.emplace_back(c_.signatures[c].power[1], c);
    std::sort(by_square.begin(), by_square.end());
    for (size_t r = 0; r < r_.count(); ++r) {
      progress_("comparing " + r_.parameter(r).name);
      const Signature& mine = r_.signatures[r];
      if (mine.constant()) continue;
      const double reach = 2 * most_square_change(mine);
      auto at = std::lower_bound(by_square.begin(), by_square.end(), std::pair(mine.power[1] - reach, size_t{0}));
      at::Tensor value;
      for (; at != by_square.end() && at->first <= mine.power[1] + reach; ++at) {
        const size_t c = at->second;
        if (!may_hold_the_same(mine, c_.signatures[c])) continue;
        if (!value.defined()) value = r_.side.load(r);
        const auto content = find_content(value, c_.side.load(c));
        if (!content) continue;
        whole_.push_back({r, c, *content});
        r_.matched[r] = c_.matched[c] = true;
      }
    }
  }

  // Of tensors that no content pairs, those whose samples are correlated beyond chance: the best one for each.
  void match_similar() {
    std::map<std::pair<size_t, std::vector<int64_t>>, std::vector<double>> known;
    for (size_t r = 0; r < r_.count(); ++r) {
      const Parameter& mine = r_.parameter(r);
      if (!r_.open(r) || r_.signatures[r].constant() || mine.count() < kLeastSimilar) continue;
      progress_("samples of " + mine.name);
      const auto places = sample_places(mine.count(), kUnitSamples);
      std::map<std::vector<int64_t>, std::vector<double>> own;
      double most = kSimilar;
      std::optional<Whole> best;
      for (size_t c = 0; c < c_.count(); ++c) {
        const Parameter& theirs = c_.parameter(c);
        if (!c_.open(c) || c_.signatures[c].constant() || theirs.count() != mine.count()) continue;
        for (const Order& order : orders_between(theirs.shape, mine.shape)) {
          std::vector<double>&a = own[order.reference], &b = known[{c, order.candidate}];
          if (a.empty()) a = sample(r_.side.load(r), order.reference, places);
          if (b.empty()) b = sample(c_.side.load(c), order.candidate, places);
          if (const double x = std::abs(correlation(a, b)); x > most) most = x, best = Whole{r, c, {order, {}}};
        }
      }
      if (!best) continue;
      similar_.push_back(*best);
      r_.similar[r] = c_.similar[best->candidate] = true;
    }
  }

  static double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    double sa = 0, sb = 0, saa = 0, sbb = 0, sab = 0;
    for (size_t i = 0; i < a.size(); ++i)
      sa += a[i], sb += b[i], saa += a[i] * a[i], sbb += b[i] * b[i], sab += a[i] * b[i];
    const double spread = (saa - sa * sa / n) * (sbb - sb * sb / n);
    return spread > 0 ? (sab - sa * sb / n) / std::sqrt(spread) : 0;
  }

  // A tensor that has a namesake of its size is faulty rather than fused.
  static std::set<size_t> unnamed(const Known& mine, const Known& other) {
    std::map<std::string, int64_t> counts;
    for (size_t i = 0; i < other.count(); ++i) counts[other.names[i].plain] = other.parameter(i).count();
    std::set<size_t> out;
    for (size_t i = 0; i < mine.count(); ++i) {
      const auto namesake = counts.find(mine.names[i].plain);
      const bool named = namesake != counts.end() && namesake->second == mine.parameter(i).count();
      if (mine.open(i) && !mine.similar[i] && !named && !mine.signatures[i].constant()) out.insert(i);
    }
    return out;
  }

  // Tensors of `mine` that are parts of tensors of `other`.
  void find_parts(Known& mine, Known& other) {
    const std::set<size_t> parts = unnamed(mine, other), wholes = unnamed(other, mine);
    for (const size_t w : wholes) {
      const std::vector<int64_t>& shape = other.parameter(w).shape;
      std::map<int64_t, std::set<Slice>> found;  // by axis
      for (const size_t p : parts)
        for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
          if (const auto slice = part_of(mine, p, other, w, axis)) found[axis].insert(*slice);
      const auto best = std::max_element(
          found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
      if (best == found.end() || best->second.size() < 2) continue;  // a single one: cut or padded, not fused
      progress_("parts of " + other.parameter(w).name);
      keep_parts(other, w, best->second);
    }
  }

  static std::optional<Slice> part_of(Known& mine, size_t p, Known& other, size_t w, int64_t axis) {
    const Parameter &part = mine.parameter(p), &whole = other.parameter(w);
    const int64_t width = whole.count() / whole.shape[axis];
    if (part.count() >= whole.count() || part.count() % width != 0 ||
        dtype_class(part.dtype) != dtype_class(whole.dtype))
      return std::nullopt;
    for (int64_t own = -1; own < static_cast<int64_t>(part.shape.size()); ++own) {
      const int64_t length = own < 0 ? 1 : part.shape[own];
      if (length * width != part.count()) continue;
      if (const auto begin = find_rows(other.rows(w, axis), mine.rows(p, own))) return Slice{axis, *begin, length};
    }
    return std::nullopt;
  }

  // Found parts and, between them, what is left: parts whose content is faulty.
  static void keep_parts(Known& known, size_t tensor, const std::set<Slice>& found) {
    const int64_t axis = (*found.begin())[0], length = known.parameter(tensor).shape[axis], usual = (*found.begin())[2];
    std::vector<Slice> all;
    int64_t end = 0;
    const auto fill = [&](int64_t until) {
      const bool even = (until - end) % usual == 0;
      while (end < until) {
        const int64_t step = even ? usual : until - end;
        all.push_back({axis, end, step});
        end += step;
      }
    };
    for (const Slice& slice : found) {
      if (slice[1] < end) continue;  // overlaps an earlier one
      fill(slice[1]);
      all.push_back(slice);
      end = slice[1] + slice[2];
    }
    fill(length);
    known.slices[tensor] = all;
  }

  // What is fused in one block is fused in all, and a bias as its weight.
  static void spread_parts(Known& known) {
    std::map<std::string, size_t> by_module;
    for (const auto& [tensor, slices] : known.slices) by_module.emplace(known.names[tensor].module_form, tensor);
    for (size_t i = 0; i < known.count(); ++i) {
      if (known.matched[i] || known.slices.contains(i)) continue;
      const auto like = by_module.find(known.names[i].module_form);
      if (like == by_module.end()) continue;
      const std::vector<Slice> slices = known.slices.at(like->second);
      const std::vector<int64_t>&shape = known.parameter(i).shape, &model = known.parameter(like->second).shape;
      if (shape == model) {
        known.slices[i] = slices;
      } else if (shape.size() == 1 && shape[0] == model[slices[0][0]]) {
        for (Slice slice : slices) slice[0] = 0, known.slices[i].push_back(slice);
      }
    }
  }

  void add_units(const Known& known) {
    const int side = &known == &c_;
    std::vector<Unit>& units = side == 0 ? units_.reference : units_.candidate;
    for (size_t i = 0; i < known.count(); ++i) {
      first_unit_[side][i] = units.size();
      const auto fused = known.slices.find(i);
      if (fused == known.slices.end()) {
        units.push_back(whole(known, i));
        continue;
      }
      const at::Tensor value = known.side.load(i);
      for (size_t part = 0; part < fused->second.size(); ++part) {
        Unit unit = whole(known, i);
        unit.slice = fused->second[part];
        unit.shape = sliced(unit.shape, unit.slice);
        unit.constant = signature_of(sliced(value, unit.slice)).constant();
        name_part(unit, part, fused->second.size());
        units.push_back(std::move(unit));
      }
    }
  }

  // The parts of qkv are q, k and v; those of a stack of layers are its layers.
  static void name_part(Unit& unit, size_t part, size_t parts) {
    ParameterName& name = unit.name;
    const auto has = [&](const char* word) {
      return std::any_of(name.tokens.words.begin(), name.tokens.words.end(),
                         [&](const auto& token) { return token.text == word; });
    };
    const bool stacked = (*unit.slice)[2] == 1 || (name.tokens.blocks.empty() && parts > 3);
    if (stacked) {
      name.tokens.blocks.insert(name.tokens.blocks.begin(), static_cast<int>(part));
      name.form += "#";
      name.plain += fmt::format("#{}", part);
      return;
    }
    const char* role = parts == 3 && has("qkv")  ? (part == 0   ? "q"
                                                    : part == 1 ? "k"
                                                                : "v")
                       : parts == 2 && has("kv") ? (part == 0 ? "k" : "v")
                                                 : nullptr;
    if (role != nullptr) {
      std::erase_if(name.tokens.words, [](const auto& token) { return token.text == "qkv" || token.text == "kv"; });
      name.tokens.words.push_back({role, 1});
      std::sort(name.tokens.words.begin(), name.tokens.words.end());
    }
    const std::string text = fmt::format("#{}/{}", part, parts);
    name.form += text, name.module_form += text, name.plain += text;
  }

  void match_parts() {
    std::vector<Signature> mine = signatures(units_.reference, r_), theirs = signatures(units_.candidate, c_);
    for (size_t r = 0; r < units_.reference.size(); ++r)
      for (size_t c = 0; c < units_.candidate.size(); ++c) {
        const Unit &a = units_.reference[r], &b = units_.candidate[c];
        if ((!a.slice && !b.slice) || a.constant || b.constant || !may_hold_the_same(mine[r], theirs[c])) continue;
        const auto content =
            find_content(sliced(r_.side.load(a.tensor), a.slice), sliced(c_.side.load(b.tensor), b.slice));
        if (content) units_.held.push_back({r, c, *content});
      }
  }

  static std::vector<Signature> signatures(const std::vector<Unit>& units, const Known& known) {
    std::vector<Signature> out;
    for (const Unit& unit : units)
      out.push_back(unit.slice ? signature_of(sliced(known.side.load(unit.tensor), unit.slice))
                               : known.signatures[unit.tensor]);
    return out;
  }

  Known r_, c_;
  const AuditProgress& progress_;
  std::vector<Whole> whole_, similar_;
  std::map<size_t, size_t> first_unit_[2];
  Units units_;
};

}  // namespace

Units find_units(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress) {
  return Search(reference, candidate, progress).run();
}

}  // namespace parity

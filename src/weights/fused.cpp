#include "weights/fused.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/dtype_kind.hpp"

namespace parity {
namespace {

constexpr int64_t kLeastFused = 8;  // elements: smaller tensors are found in larger ones by chance

// A tensor that has a namesake of its size is faulty rather than fused.
std::set<size_t> unnamed(const KnownSide& mine, const KnownSide& other) {
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

std::optional<Slice> part_of(KnownSide& mine, size_t p, KnownSide& other, size_t w, int64_t axis) {
  const Parameter &part = mine.parameter(p), &whole = other.parameter(w);
  const int64_t width = whole.count() / whole.shape[axis];
  if (part.count() >= whole.count() || part.count() % width != 0 || dtype_class(part.dtype) != dtype_class(whole.dtype))
    return std::nullopt;
  for (int64_t own = -1; own < static_cast<int64_t>(part.shape.size()); ++own) {
    const int64_t length = own < 0 ? 1 : part.shape[own];
    if (length * width != part.count()) continue;
    if (const auto begin = find_rows(other.rows(w, axis), mine.rows(p, own))) return Slice{axis, *begin, length};
  }
  return std::nullopt;
}

// Found parts and, between them, what is left: parts whose content is faulty.
void keep_parts(KnownSide& known, size_t tensor, const std::set<Slice>& found) {
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

}  // namespace

bool KnownSide::open(size_t i) const {
  return !matched[i] && is_float(parameter(i).dtype) && parameter(i).count() >= kLeastFused;
}

KnownSide look_at(const WeightSide& side, const AuditProgress& progress) {
  KnownSide known{side, {}, {}, {}, {}, {}, {}};
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

void find_parts(KnownSide& mine, KnownSide& other, const AuditProgress& progress) {
  const std::set<size_t> parts = unnamed(mine, other), wholes = unnamed(other, mine);
  for (const size_t w : wholes) {
    const std::vector<int64_t>& shape = other.parameter(w).shape;
    std::map<int64_t, std::set<Slice>> found;  // by axis
    for (const size_t p : parts)
      for (int64_t axis = 0; axis < static_cast<int64_t>(shape.size()); ++axis)
        if (const auto slice = part_of(mine, p, other, w, axis)) found[axis].insert(*slice);
    const auto best = std::max_element(found.begin(), found.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    if (best == found.end() || best->second.size() < 2) continue;  // a single one: cut or padded, not fused
    progress("parts of " + other.parameter(w).name);
    keep_parts(other, w, best->second);
  }
}

void spread_parts(KnownSide& known) {
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

void name_part(Unit& unit, size_t part, size_t parts) {
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

}  // namespace parity

#include "weights/names.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "core/numbers_in_text.hpp"

namespace parity {
std::string owner_of(const std::string& path) {
  const size_t dot = path.find_last_of("./");
  return path.substr(0, dot == std::string::npos ? 0 : dot);
}

namespace {

constexpr std::array<std::string_view, 9> kWeight{"weight", "kernel", "scale",   "gamma", "embedding",
                                                  "g",      "w",      "weights", "table"};
constexpr std::array<std::string_view, 3> kBias{"bias", "beta", "b"};
// Statistics of a batch norm in torch, flax and keras.
constexpr std::array<std::string_view, 3> kMean{"running_mean", "mean", "moving_mean"};
constexpr std::array<std::string_view, 5> kVariance{"running_var", "var", "moving_var", "variance", "moving_variance"};

constexpr int kLeastShared = 3;  // parameters that numbered members have in common

// Words of which a parameter has one; two names with different ones are two parameters.
const std::vector<std::vector<std::string_view>> kExclusiveWords{
    {"q", "k", "v"},  {"up", "gate", "down"}, {"attn", "ffn"}, {"self", "cross"}, {"token", "position"},
    {"time", "text"}, {"fc1", "fc2"},         {"norm", "ffn"}, {"o", "q"},        {"o", "k"},
    {"o", "v"},       {"encoder", "decoder"},
};

constexpr std::array<std::string_view, 8> kComputed{
    "freqs", "rope", "rotary", "inv_freq", "position_ids", "masked_bias", "causal_mask", "num_batches_tracked"};

template <class Table>
bool in(const Table& table, std::string_view word) {
  return std::find(table.begin(), table.end(), word) != table.end();
}

std::string kind_of(std::string_view leaf) {
  if (in(kWeight, leaf)) return "weight";
  if (in(kBias, leaf)) return "bias";
  return in(kMean, leaf) ? "mean" : in(kVariance, leaf) ? "variance" : "";
}

void divide(ParameterName& name) {
  const size_t dot = name.path.find_last_of("./");
  name.leaf = dot == std::string::npos ? name.path : name.path.substr(dot + 1);
  name.module = owner_of(name.path);
  name.kind = kind_of(name.leaf);
  if (!name.kind.empty()) return;
  for (const char* kind : {"weight", "bias"}) {  // torch.nn.MultiheadAttention: in_proj_weight
    const std::string suffix = std::string("_") + kind;
    if (!name.leaf.ends_with(suffix) || name.leaf.size() <= suffix.size()) continue;
    name.kind = kind;
    name.module = name.path.substr(0, name.path.size() - suffix.size());
  }
}

// Components that all names of a side begin with ("model.", "params.").
size_t common_prefix(const std::vector<std::string>& paths) {
  if (paths.size() < 2) return 0;
  size_t length = paths[0].size();
  for (const std::string& path : paths)
    length =
        std::mismatch(paths[0].begin(), paths[0].begin() + length, path.begin(), path.end()).first - paths[0].begin();
  const size_t dot = std::string_view(paths[0]).substr(0, length).find_last_of("./");
  return dot == std::string::npos ? 0 : dot + 1;
}

// Does the number at [begin, end) count the members of a container: "stages.1.", "stage1.", "stage_1."? Not where it
// belongs to the word: "attn1" attends to itself, and glued to a module that holds parameters alone it tells that
// module from its siblings ("fc1", "bn2").
bool counts_members(const std::string& path, size_t begin, size_t end) {
  constexpr std::string_view kClosing = "./_";
  if (begin == 0 || end >= path.size() || kClosing.find(path[end]) == std::string_view::npos) return false;
  const bool alone = path[begin - 1] == '.' || path[begin - 1] == '/';
  if (!alone && path.find_first_of("./", end + 1) == std::string::npos) return false;
  const NameTokens upto = name_tokens(std::string_view(path).substr(0, end));
  const std::string number = path.substr(begin, end - begin);
  return std::ranges::any_of(upto.words, [&](const auto& word) { return word.text == number; });
}

// What stands in front of the counted word: "encoder." of "encoder.stage" and of "encoder.stages.".
std::string parent_of(std::string_view container) {
  const size_t word = container.find_last_not_of("./_");
  const size_t dot = word == std::string_view::npos ? word : container.find_last_of("./", word);
  return std::string(container.substr(0, dot == std::string_view::npos ? 0 : dot + 1));
}

// "blk." of "blk.7.", "stage" of "stage1.": containers whose numbered members share three or more parameters, and which
// name_tokens does not know for layers. By the path up to the number, what stands for it: "blocks.", behind its own
// word where that tells it from a sibling (down1, up1).
std::map<std::string, std::string> layer_containers(const std::vector<std::string>& paths) {
  std::map<std::string, std::map<std::string, std::set<std::string>>> members;  // container -> rest of path -> numbers
  for (const std::string& path : paths) {
    if (!name_tokens(path).blocks.empty()) continue;
    for (const auto& [begin, length] : numbers_in(path))
      if (counts_members(path, begin, begin + length))
        members[path.substr(0, begin)][path.substr(begin + length)].insert(path.substr(begin, length));
  }
  std::map<std::string, std::string> found;
  std::map<std::string, int> siblings;
  for (const auto& [container, rests] : members) {
    if (std::ranges::count_if(rests, [](const auto& rest) { return rest.second.size() > 1; }) < kLeastShared) continue;
    found[container];
    ++siblings[parent_of(container)];
  }
  for (auto& [container, by] : found) {
    const std::string parent = parent_of(container);
    by = (siblings[parent] > 1 ? container + "." : parent) + "blocks.";
  }
  return found;
}

// With "blocks." for the first such container, so that its number counts as a layer's.
std::string with_layers(const std::string& path, const std::map<std::string, std::string>& containers) {
  for (const auto& [container, by] : containers)
    if (path.starts_with(container) && path.size() > container.size() && path[container.size()] >= '0' &&
        path[container.size()] <= '9')
      return by + path.substr(container.size());
  return path;
}

bool has(const ParameterName& name, std::string_view word) {
  return std::any_of(name.tokens.words.begin(), name.tokens.words.end(),
                     [&](const auto& token) { return token.text == word; });
}

}  // namespace

std::vector<ParameterName> parameter_names(const std::vector<std::string>& paths) {
  const size_t prefix = common_prefix(paths);
  const std::map<std::string, std::string> containers = layer_containers(paths);
  std::vector<ParameterName> names;
  for (const std::string& path : paths) {
    ParameterName name;
    name.path = path;
    divide(name);
    const bool named = !name.kind.empty();
    const auto tokens = [&](const std::string& text) { return name_tokens(with_layers(text, containers)); };
    name.tokens = tokens(named ? name.module : path);
    name.module_form = named ? name.tokens.shape : tokens(name.module).shape;
    if (const std::string parent = owner_of(name.module); !parent.empty()) name.parent_form = tokens(parent).shape;
    name.form = name.tokens.shape + "| " + (named ? name.kind : name.leaf);
    name.plain = named ? name.module.substr(std::min(prefix, name.module.size())) + "|" + name.kind
                       : path.substr(std::min(prefix, path.size()));
    names.push_back(std::move(name));
  }
  return names;
}

bool roles_differ(const ParameterName& a, const ParameterName& b) {
  if (!a.kind.empty() && !b.kind.empty() && a.kind != b.kind) return true;
  for (const auto& group : kExclusiveWords) {
    bool mine = false, theirs = false, shared = false;
    for (const std::string_view word : group) {
      const bool x = has(a, word), y = has(b, word);
      mine = mine || x, theirs = theirs || y, shared = shared || (x && y);
    }
    if (mine && theirs && !shared) return true;
  }
  return false;
}

std::string role_of(const ParameterName& name) {
  for (const std::string_view word : {"q", "k", "v", "gate", "up", "down"})
    if (has(name, word)) return std::string(word);
  return name.kind == "mean" || name.kind == "variance" ? name.kind : "";
}

double likeness(const ParameterName& a, const ParameterName& b) {
  const double alike = name_similarity(a.tokens, b.tokens);
  return a.kind == b.kind ? alike : 0.7 * alike;
}

bool computed_by_name(const std::string& path) {
  const std::string_view last = std::string_view(path).substr(owner_of(path).size());
  return std::any_of(kComputed.begin(), kComputed.end(),
                     [&](std::string_view word) { return last.find(word) != std::string_view::npos; });
}

}  // namespace parity

#include "jobs/take_rules.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/glob.hpp"

namespace parity {
namespace {

// The path itself, or a module that it lies in ("blocks.0" for "blocks.0.attn1/add.0").
bool matches_inside(std::string_view path, std::string_view glob) {
  for (size_t end = path.size(); end != std::string_view::npos && end > 0; end = path.find_last_of("./", end - 1))
    if (matches_layer(path.substr(0, end), glob)) return true;
  return matches_layer("", glob);
}

}  // namespace

TakeRules::TakeRules(const std::vector<std::string>& rules) {
  for (const std::string& text : rules) {
    const size_t at = text.rfind('=');
    const std::string side = at == std::string::npos ? "" : text.substr(at + 1);
    if (at == 0 || (side != "reference" && side != "port"))
      throw Error(fmt::format("--take '{}' is not PATH_GLOB=reference or PATH_GLOB=port", text));
    rules_.push_back({text.substr(0, at), side == "reference"});
  }
}

std::vector<bool> TakeRules::from_reference(const Program& program, const Pairing& pairing) const {
  std::vector<bool> taken(program.boundaries.size());
  for (const Rule& rule : rules_) {
    size_t fits = 0;
    for (const Pair& pair : pairing.pairs) {
      if (!matches_inside(program.boundaries[pair.boundary].path, rule.glob) &&
          !matches_inside(pair.candidate.first, rule.glob))
        continue;
      ++fits;
      taken[pair.boundary] = rule.reference;
    }
    if (fits == 0) throw Error(fmt::format("--take '{}' matches no compared op; see: parity-check inspect", rule.glob));
  }
  return taken;
}

}  // namespace parity

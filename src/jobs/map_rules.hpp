// Pairs as rules of a map file (pair/name_map.hpp), few: numbers of layers are captured.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "pair/name_map.hpp"

namespace parity {

struct MapRule {
  std::string left, right, steps;  // steps: " perm(1,0)"
  bool general = false;
  std::string text() const;
};

/// Can a map file hold this name? "" cannot: see quoted_name.
bool writable(const std::string& name);
/// As a map file has it: `""` for the root's result.
std::string quoted_name(const std::string& name);

/// With a space before it, "" when there is nothing to do.
std::string steps_text(const Layout& layout);

/// Is a rule wrong that gives `reference` this target? Asked for names that no pair has.
using Unwanted = std::function<bool(const std::string& reference, const NameMap::Target& target)>;

/// Rules that give back every pair exactly: each is tried with NameMap before it is returned, and what general ones get
/// wrong follows one by one (later lines win). `others`: names besides those of the pairs; a general rule that gives
/// one of them an `unwanted` target is not made.
std::vector<std::string> generalised(const std::vector<MapRule>& pairs, const std::vector<std::string>& others = {},
                                     const Unwanted& unwanted = nullptr);

}  // namespace parity

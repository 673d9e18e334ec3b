#include "selftest/sample.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <tuple>

namespace parity {
namespace {

// FNV-1a, 64 bits (Fowler, Noll, Vo): the same on every machine, unlike std::hash.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

auto place_in_list(const SelftestPair& pair) {
  return std::tuple(pair.family, pair.dtype, diagnosis_class(pair.diagnosis), hash_of(pair.file), pair.file);
}

}  // namespace

std::string_view diagnosis_class(std::string_view diagnosis) {
  constexpr std::array kCasts{"rounding", "truncation"};
  constexpr std::array kCache{"cache", "stale"};
  constexpr std::array kPositions{"RoPE", "mask", "position", "window", "NaN"};
  const auto has = [&](const auto& words) {
    return std::any_of(words.begin(), words.end(), [&](const char* w) { return diagnosis.find(w) != diagnosis.npos; });
  };
  return has(kCasts) ? "casts" : has(kCache) ? "cache" : has(kPositions) ? "positions" : "formula";
}

SelftestSuite sample_of(SelftestSuite suite, int faults) {
  std::vector<SelftestPair> list;
  std::vector<std::string> chosen;
  for (const SelftestPair& pair : suite.pairs)
    if (pair.fault) list.push_back(pair);
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) { return place_in_list(a) < place_in_list(b); });
  const auto all = std::ssize(list), wanted = std::min<std::ptrdiff_t>(faults, all);
  for (std::ptrdiff_t i = 0; i < all; ++i)
    if ((i + 1) * wanted / all > i * wanted / all) chosen.push_back(list[i].file);
  std::sort(chosen.begin(), chosen.end());
  std::erase_if(suite.pairs, [&](const SelftestPair& pair) {
    return pair.fault && !std::binary_search(chosen.begin(), chosen.end(), pair.file);
  });
  return suite;
}

}  // namespace parity

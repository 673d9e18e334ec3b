// What most values say, where some may say otherwise.
#pragma once
#include <algorithm>
#include <map>
#include <optional>

namespace parity {

/// The first of those that have most votes; nullopt: there are none.
template <typename Key>
std::optional<Key> most_of(const std::map<Key, int>& votes) {
  const auto most = std::ranges::max_element(votes, {}, [](const auto& vote) { return vote.second; });
  return most == votes.end() ? std::nullopt : std::optional(most->first);
}

}  // namespace parity

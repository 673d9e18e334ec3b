// What became of each pair when the suite was last recorded (src/selftest/score.json), and what is worse since.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "selftest/judge.hpp"

namespace parity {

struct KnownOutcome {
  bool found = false, located = false, false_alarm = false;
};
using Score = std::map<std::string, KnownOutcome>;  // by the pair's file

/// Reads the `pairs` of a parity-selftest/1. Throws Error naming the file.
Score read_score(const std::filesystem::path& file);

/// One line for each fault that was found or located there and is not now, and for each new false alarm; a pair that is
/// not there counts as right. Names are left to the least share: on another CPU a few change between near synonyms.
std::vector<std::string> losses(const SelftestResult& result, const Score& score);

}  // namespace parity

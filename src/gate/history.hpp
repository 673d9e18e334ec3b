// Many reports in one picture: verdicts and the worst errors over time.
#pragma once
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"

namespace parity {

/// One report of a history.
struct Moment {
  std::string file, date;
  Verdict verdict = Verdict::inconclusive;
  int64_t rows = 0, failed = 0, open = 0;
  std::map<std::string, double> of_limit;  // by dtype: the largest share of its limit that a row uses
  std::map<std::string, double> free;      // by dtype: the largest free-running relative L2
};

Moment moment_of(const Report& report, std::string file);

/// By date; those of one date in the order given.
std::vector<Moment> history_of(std::vector<Moment> moments);

/// Draws history.svg into `folder`; "" or what went wrong.
std::string draw_history(const std::vector<Moment>& moments, const std::filesystem::path& folder);

/// gnuplot's commands. Public for the tests.
std::string history_script(const std::vector<Moment>& moments, const std::string& output);

nlohmann::json history_json(const std::vector<Moment>& moments);

}  // namespace parity

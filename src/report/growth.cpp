#include "report/growth.hpp"

#include <cmath>
#include <map>

namespace parity {
namespace {

// "blocks.3.norm1" -> {"blocks.*.norm1", 3}; number -1 when there is none.
std::pair<std::string, int> pattern_of(const std::string& path) {
  size_t begin = 0;
  while (begin < path.size()) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part.size() < 6 && part.find_first_not_of("0123456789") == std::string::npos)
      return {path.substr(0, begin) + "*" + path.substr(end), std::stoi(part)};
    begin = end + 1;
  }
  return {path, -1};
}

double slope(const std::map<int, double>& errors) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [depth, error] : errors) {
    const double x = std::log(depth + 1.), y = std::log(error);
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace

std::vector<Growth> error_growth(const Report& report) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, std::map<int, double>>> found;
  for (const OpResult& op : report.ops) {
    const auto [pattern, number] = pattern_of(op.path);
    if (number < 0 || op.call > 0 || !op.free || !op.free->rel_l2 || !(*op.free->rel_l2 > 0)) continue;
    found[{op.reference, op.dtype}][pattern][number] = *op.free->rel_l2;
  }
  std::vector<Growth> out;
  for (const auto& [run, patterns] : found) {
    const std::pair<const std::string, std::map<int, double>>* best = nullptr;
    for (const auto& entry : patterns)
      if (entry.second.size() >= 4 && (best == nullptr || entry.first.size() < best->first.size())) best = &entry;
    if (best != nullptr)
      out.push_back({best->first, run.second, static_cast<int>(best->second.size()), slope(best->second)});
  }
  return out;
}

}  // namespace parity

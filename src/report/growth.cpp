#include "report/growth.hpp"

#include <cmath>
#include <map>

namespace parity {
namespace {

constexpr size_t kSmallestDepth = 4;  // a line through fewer points says nothing about an exponent

// One pattern's rows. Repeated blocks do the same on the same shape; the steps of a Sequential do not.
struct Blocks {
  std::string kind;
  std::vector<int64_t> shape;
  bool repeated = true;
  std::map<int, double> errors;  // by index of the block

  void add(const OpResult& op, int number) {
    if (errors.empty()) kind = op.kind, shape = op.shape;
    repeated = repeated && op.kind == kind && op.shape == shape;
    errors[number] = *op.free->rel_l2;
  }
};

double slope(const std::map<int, double>& errors) {
  double n = 0, sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (const auto& [depth, error] : errors) {
    const double x = std::log(depth + 1.), y = std::log(error);
    n += 1, sx += x, sy += y, sxx += x * x, sxy += x * y;
  }
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

}  // namespace

// Only the modules' part: the number of an op in its module ("blocks.0/add.3" is the fourth addition) is no depth.
LayerPlace place_of(const std::string& path) {
  const size_t modules = std::min(path.find('/'), path.size());
  for (size_t begin = 0; begin < modules;) {
    const size_t end = std::min(path.find('.', begin), modules);
    const std::string part = path.substr(begin, end - begin);
    if (!part.empty() && part.size() < 6 && part.find_first_not_of("0123456789") == std::string::npos)
      return {path.substr(0, begin) + "*" + path.substr(end), std::stoi(part)};
    begin = end + 1;
  }
  return {path};
}

std::vector<Growth> error_growth(const Report& report) {
  std::map<std::pair<std::string, std::string>, std::map<std::string, Blocks>> found;
  for (const OpResult& op : report.ops) {
    const LayerPlace place = place_of(op.path);
    if (place.number < 0 || op.call > 0 || !op.free || !op.free->rel_l2 || !(*op.free->rel_l2 > 0)) continue;
    found[{op.reference, op.dtype}][place.pattern].add(op, place.number);
  }
  std::vector<Growth> out;
  for (const auto& [run, patterns] : found) {
    const std::pair<const std::string, Blocks>* best = nullptr;
    for (const auto& entry : patterns)
      if (entry.second.repeated && entry.second.errors.size() >= kSmallestDepth &&
          (best == nullptr || entry.first.size() < best->first.size()))
        best = &entry;
    if (best != nullptr)
      out.push_back({run.first, best->first, run.second, static_cast<int>(best->second.errors.size()),
                     slope(best->second.errors)});
  }
  return out;
}

}  // namespace parity

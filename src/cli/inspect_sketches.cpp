#include "cli/inspect_sketches.hpp"

#include <fmt/format.h>

#include "cli/inspect_tensors.hpp"
#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/precision.hpp"
#include "dump/sketch.hpp"
#include "pair/name_map.hpp"

namespace parity::cli {
namespace {

nlohmann::json finite(double x) { return std::isfinite(x) ? nlohmann::json(x) : nlohmann::json(nullptr); }

// "4096 buckets ± 1.1 %, norm 1.55e+03, -5.4 … 5.3"
std::string numbers_text(const Sketch& s) {
  std::string text = fmt::format("{:4} buckets ± {:.2g} %, norm {:.4g}", s.buckets.size(),
                                 100 / std::sqrt(2 * static_cast<double>(s.buckets.size())), s.norm());
  if (s.min <= s.max) text += fmt::format(", {:.3g} … {:.3g}", s.min, s.max);
  if (s.nan + s.inf > 0) text += fmt::format(", {} NaN, {} infinite", s.nan, s.inf);
  return text;
}

}  // namespace

std::string describe_sketches(const Dump& dump, const std::string& layer, nlohmann::json& json) {
  std::string lines;
  auto& rows = json["tensors"] = nlohmann::json::array();
  for (const SketchPoint& point : sketch_points(dump)) {
    if (!matches_layer(point.path, layer)) continue;
    nlohmann::json row{{"path", point.path}, {"call", point.call},   {"role", point.role},
                       {"kind", point.kind}, {"shape", point.shape}, {"dtype", dtype_name(point.dtype)}};
    std::string text = point.key.empty() ? "not stored" : "whole";
    if (point.sketched) {
      const Sketch s = read_sketch(dump, point);
      text = numbers_text(s);
      row["buckets"] = s.buckets.size();
      row["norm"] = finite(s.norm());
      row["min"] = finite(s.min);
      row["max"] = finite(s.max);
      row["nan"] = s.nan;
      row["inf"] = s.inf;
    }
    lines += text_of("{:6} {:52} {:22} {}\n", point.role,
                     point.call == 0 ? point.path : fmt::format("{} (call {})", point.path, point.call),
                     type_text(point.dtype, point.shape), text);
    rows.push_back(std::move(row));
  }
  if (rows.empty() && layer != "all")
    throw Error(fmt::format("{}: --layer '{}' matches nothing", dump.file().string(), layer));
  return lines;
}

}  // namespace parity::cli

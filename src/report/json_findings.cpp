// What the rows of a report come to, in JSON: causes, what they have in common, what to run next, the program as a
// whole, what changed since the baseline.
#include <algorithm>

#include "report/causes.hpp"
#include "report/discriminator.hpp"
#include "report/json_parts.hpp"
#include "report/json_values.hpp"
#include "report/next.hpp"

namespace parity {

using nlohmann::json;

json findings_json(const Report& report) {
  constexpr size_t kPaths = 20;
  json out = json::array();
  for (const Cause& cause : causes(report)) {
    const OpResult& first = *cause.rows.front();
    std::vector<std::string> paths;
    for (size_t i = 0; i < std::min(cause.rows.size(), kPaths); ++i) paths.push_back(cause.rows[i]->path);
    out.push_back({{"cause", plain(cause.name)},
                   {"verdict", verdict_name(cause.verdict)},
                   {"gate", cause.gate == Gate::none ? json(nullptr) : json(gate_name(cause.gate))},
                   {"kind", plain(cause.kind)},
                   {"rows", cause.rows.size()},
                   {"first", plain(first.path)},
                   {"call", first.call},
                   {"dtype", plain(first.dtype)},
                   {"reference", plain(first.reference)},
                   {"paths", texts(paths)},
                   {"source", plain(first.source)},
                   {"candidate_source", plain(first.candidate_source)},
                   {"sentence", plain(first.diagnosis)}});
  }
  return out;
}

json discriminator_json(const Report& report) {
  const auto found = discriminate(report);
  if (!found) return nullptr;
  return {{"attribute", plain(found->attribute)},
          {"the_same", texts(found->the_same)},
          {"failing_with", found->failing_with},
          {"with", found->with},
          {"failing_without", found->failing_without},
          {"without", found->without},
          {"p", value(found->p)},
          {"tried", found->tried},
          {"sentence", plain(found->sentence())}};
}

json next_json(const Report& report) {
  json out = json::array();
  for (const NextStep& step : next_steps(report))
    out.push_back({{"command", plain(step.command)}, {"why", plain(step.why)}});
  return out;
}

json whole_json(const std::optional<WholeProgram>& whole) {
  if (!whole) return nullptr;
  json steps = json::array();
  for (const PrecisionStep& step : whole->steps)
    steps.push_back({{"path", plain(step.path)},
                     {"kind", plain(step.kind)},
                     {"source", plain(step.source)},
                     {"share", value(step.share)},
                     {"amplification", value(step.amplification)},
                     {"predicted", value(step.predicted)},
                     {"replayed", value(step.replayed)}});
  return {{"asked", value(whole->asked)},
          {"error", value(whole->error)},
          {"valid_error", value(whole->valid_error)},
          {"precision", value(whole->precision)},
          {"explained", value(whole->explained)},
          {"roundings", whole->roundings},
          {"steps", std::move(steps)}};
}

json since_baseline_json(const std::optional<SinceBaseline>& since) {
  if (!since) return nullptr;
  json rows = json::array();
  for (const BaselineChange& row : since->rows)
    rows.push_back({{"change", plain(row.change)},
                    {"path", plain(row.path)},
                    {"kind", plain(row.kind)},
                    {"dtype", plain(row.dtype)},
                    {"was", row.was.empty() ? json(nullptr) : json(plain(row.was))},
                    {"now", row.now.empty() ? json(nullptr) : json(plain(row.now))},
                    {"number", plain(row.number)},
                    {"note", plain(row.note)}});
  return {{"file", plain(since->file)},     {"headline", plain(since->headline)},
          {"totals", plain(since->totals)}, {"verdict", verdict_name(since->verdict)},
          {"about", texts(since->about)},   {"notes", texts(since->notes)},
          {"rows", std::move(rows)}};
}

}  // namespace parity

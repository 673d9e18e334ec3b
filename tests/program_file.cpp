#include "program_file.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "jobs/port_job.hpp"
#include "pair/candidate.hpp"
#include "pair/port_pairing.hpp"

namespace parity::testing {

int64_t ProgramFile::leaf(const at::Tensor& tensor, const json& names) {
  const std::string key = std::to_string(next_);
  recording_.value(key, tensor);
  json event = value_json(next_, tensor, key);
  event.update({{"e", "leaf"}, {"names", names}});
  recording_.event(event);
  return next_++;
}

int64_t ProgramFile::op(const std::string& name, json args, const std::vector<at::Tensor>& results, json kwargs,
                        json extra) {
  json out = json::array();
  int64_t first = -1;
  for (size_t j = 0; j < results.size(); ++j) {
    if (!results[j].defined()) {
      out.push_back(nullptr);
      continue;
    }
    const bool in_place = extra.contains("ids");
    const int64_t id = in_place ? extra["ids"][j].get<int64_t>() : next_++;
    std::string key;
    if (extra.value("store", !extra.value("view", false))) {
      key = in_place ? std::to_string(id) + "." + std::to_string(++versions_) : std::to_string(id);
      recording_.value(key, results[j]);
    }
    out.push_back(value_json(id, results[j], key));
    if (first < 0) first = id;
  }
  extra.erase("ids");
  extra.erase("store");
  json event{{"e", "op"},
             {"op", name},
             {"in", -1},
             {"args", std::move(args)},
             {"kwargs", std::move(kwargs)},
             {"out", std::move(out)}};
  event.update(extra);
  recording_.event(event);
  return first;
}

Dump ProgramFile::dump() {
  recording_.close();
  return Dump(file_.path());
}

std::map<std::string, at::Tensor> replayed(const Dump& dump, Precision precision, ReplayReport* report) {
  const Program program = load_program(dump);
  std::map<std::string, at::Tensor> values;
  ReplayOptions options;
  options.precision = precision;
  ReplayReport result = replay(dump, program, options, [&](size_t b, const at::Tensor& value) {
    values.try_emplace(program.boundaries[b].path, value.clone());
    return std::nullopt;
  });
  if (report != nullptr) *report = std::move(result);
  return values;
}

Report judged_with(ProgramFile& file, const at::Tensor& value, const std::vector<std::string>& recorded) {
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  std::vector<CandidateTensor> tensors = tensors_of(dump, program);
  if (!recorded.empty())
    std::erase_if(tensors, [&](const CandidateTensor& t) {
      return std::find(recorded.begin(), recorded.end(), t.path) == recorded.end();
    });
  REQUIRE(!tensors.empty());
  if (value.defined()) tensors.back().load = [value] { return value; };
  const PortPairing pairing = pair_by_name(program, tensors, &program, nullptr);
  JobResult result = run_port_job(dump, program, tensors, pairing, {});
  Report report;
  report.ops = std::move(result.rows);
  report.coverage[""] = std::move(result.coverage);
  return report;
}

OpResult judged_result(ProgramFile& file, const at::Tensor& value) {
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  std::vector<CandidateTensor> tensors = tensors_of(dump, program);
  CandidateTensor* result = nullptr;
  for (CandidateTensor& tensor : tensors)
    if (at::IntArrayRef(tensor.shape) == value.sizes()) result = &tensor;
  REQUIRE(result != nullptr);
  result->load = [value] { return value; };
  const PortPairing pairing = pair_by_name(program, tensors, &program, nullptr);
  for (const OpResult& row : run_port_job(dump, program, tensors, pairing, {}).rows)
    if (row.path == result->path) return row;
  throw std::runtime_error("no row " + result->path);
}

std::string diagnosis_of(ProgramFile& file, const at::Tensor& value) { return judged_result(file, value).diagnosis; }

}  // namespace parity::testing

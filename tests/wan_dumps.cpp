#include "wan_dumps.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "pair/name_map.hpp"
#include "pair/probes.hpp"
#include "test_places.hpp"
#include "trace/replay.hpp"

namespace parity::test {

const std::vector<std::string>& wan_dumps() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto* model : {"diffusers-skyreels-v2-i2v", "diffusers-skyreels-v2-df", "diffusers-wan-t2v",
                              "skyreels-v2-i2v", "skyreels-v2-t2v", "skyreels-v2-df", "wan-t2v", "wan-i2v"})
      for (const auto* dtype : {".bf16", ".fp32"}) all.push_back(std::string(model) + dtype);
    return all;
  }();
  return names;
}

Dump open_dump(const std::string& name) {
  return Dump(std::string(PARITY_SOURCE_DIR "/reference_dumps/") + name + ".h5");
}

WanCase::WanCase(const std::string& name) : dump(open_dump(name)), program(load_program(dump)) {
  const auto model = port_wan(dump, Precision::recorded);
  CallbackProbe probe([this](const PointKey& point, const at::Tensor& value) {
    points.push_back(point.first);
    return value;
  });
  model->forward(0, probe);
  const auto map = NameMap::parse(model->map(), "map of " + name);
  std::map<std::string, size_t> found;  // by candidate
  std::vector<NameMap::Name> references;
  for (size_t b = 0; b < program.boundaries.size(); ++b) {
    const auto& path = program.boundaries[b].path;
    references.push_back({path});
    const auto target = map.find(path);
    const auto candidate = target ? target->candidate : path;
    if (std::find(points.begin(), points.end(), candidate) != points.end())
      found.emplace(candidate, b);
    else if (target)
      FAIL(name << ": rule for '" << path << "' leads to '" << candidate << "', which the model does not have");
  }
  map.require_all_used(references);
  for (const auto& point : points) {
    if (found.count(point))
      pairs.push_back({found.at(point), point});
    else
      unpaired.push_back(point);
  }
}

std::map<std::string, at::Tensor> reference_values(const WanCase& c, Precision precision) {
  std::map<size_t, std::string> wanted;
  for (const auto& pair : c.pairs) wanted[pair.boundary] = pair.candidate;
  std::map<std::string, at::Tensor> values;
  ReplayOptions options;
  options.precision = precision;
  replay(c.dump, c.program, options, [&](size_t boundary, const at::Tensor& computed) -> std::optional<at::Tensor> {
    if (const auto found = wanted.find(boundary); found != wanted.end()) values[found->second] = computed.clone();
    return std::nullopt;
  });
  return values;
}

std::map<std::string, at::Tensor> model_values(const WanCase& c, Precision precision,
                                               const std::map<std::string, at::Tensor>* teacher, const WanOps& ops,
                                               std::map<std::string, at::Tensor>* into) {
  std::map<std::string, at::Tensor> values;
  CallbackProbe probe([&](const PointKey& point, const at::Tensor& value) -> at::Tensor {
    values[point.first] = value.clone();
    if (into) (*into)[point.first] = values[point.first];
    if (!teacher) return value;
    const auto given = teacher->find(point.first);
    if (given == teacher->end() || given->second.sizes() != value.sizes()) return value;
    return at::empty_like(value).copy_(given->second);
  });
  port_wan(c.dump, precision, ops)->forward(0, probe);
  return values;
}

}  // namespace parity::test

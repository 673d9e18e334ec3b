#include "pipeline/recording.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "dump/dump.hpp"

namespace parity {

StageValues read_stages(const std::filesystem::path& file, const std::vector<std::string>& stages) {
  const Dump dump(file);
  StageValues values;
  for (const auto& event : dump.events()) {
    if (event.value("e", "") != "point" || event.value("role", "") != "output" || event.value("call", 0) != 0) continue;
    const auto path = event.value("path", ""), key = event.value("k", "");
    if (std::find(stages.begin(), stages.end(), path) != stages.end() && dump.has_value(key))
      values[path] = dump.value(key);
  }
  if (values.empty())
    throw Error(fmt::format("{}: holds no stage of this pipeline ({}, …)", file.string(), stages.front()));
  return values;
}

StageWriter::StageWriter(const std::filesystem::path& file, const nlohmann::json& config)
    : writer_(file, DumpHead{"module", "parity-check " PARITY_VERSION, "generate", {{"config", config}}}) {}

void StageWriter::add(const std::string& name, const at::Tensor& value) {
  const std::string key = std::to_string(next_);
  writer_.value(key, value);
  writer_.event({{"e", "point"},
                 {"path", name},
                 {"call", 0},
                 {"role", "output"},
                 {"v", next_++},
                 {"d", dtype_name(value.scalar_type())},
                 {"s", value.sizes().vec()},
                 {"k", key}});
}

}  // namespace parity

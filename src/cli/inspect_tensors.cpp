#include "cli/inspect_tensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/print.hpp"
#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/precision.hpp"
#include "core/progress.hpp"
#include "dump/dump.hpp"
#include "pair/name_map.hpp"
#include "report/sink.hpp"

namespace parity::cli {
namespace {

int64_t bytes_of(const at::ScalarType dtype, const std::vector<int64_t>& shape) {
  return static_cast<int64_t>(at::elementSize(dtype)) * c10::multiply_integers(shape);
}

// "2 NaN, 1 infinite", or "".
std::string non_finite(const at::Tensor& tensor) {
  if (!tensor.is_floating_point() && !tensor.is_complex()) return "";
  const at::Tensor wide = tensor.to(tensor.is_complex() ? at::kComplexDouble : at::kFloat);
  const int64_t nan = at::isnan(wide).sum().item<int64_t>(), infinite = at::isinf(wide).sum().item<int64_t>();
  std::vector<std::string> parts;
  if (nan > 0) parts.push_back(fmt::format("{} NaN", nan));
  if (infinite > 0) parts.push_back(fmt::format("{} infinite", infinite));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

std::string human_bytes(double bytes) {
  for (const char* unit : {"B", "KiB", "MiB", "GiB"}) {
    if (bytes < 1024) return fmt::format("{:.{}f} {}", bytes, unit[0] == 'B' ? 0 : 1, unit);
    bytes /= 1024;
  }
  return fmt::format("{:.1f} TiB", bytes);
}

std::string type_text(at::ScalarType dtype, const std::vector<int64_t>& shape) {
  return fmt::format("{} [{}]", short_dtype_name(dtype), fmt::join(shape, "x"));
}

int inspect_tensors(const Common& common, const std::string& file, const std::string& layer, bool verify) {
  const auto set = TensorSet::open(file);
  nlohmann::json json{{"file", file}, {"tensors", nlohmann::json::array()}};
  std::vector<std::string> notes = set->notes();
  std::string lines;
  int64_t total = 0;
  std::optional<ShareBar> bar(std::in_place, "verifying", common.quiet || !verify);
  for (size_t i = 0; i < set->names().size(); ++i) {
    const std::string& name = set->names()[i];
    (*bar)(static_cast<double>(i) / static_cast<double>(set->names().size()));
    if (!matches_layer(name, layer)) continue;
    const auto& [dtype, shape] = set->type(name);
    const int64_t bytes = bytes_of(dtype, shape);
    total += bytes;
    lines += text_of("{:64} {:28} {}\n", name, type_text(dtype, shape), human_bytes(static_cast<double>(bytes)));
    nlohmann::json row{{"name", name}, {"dtype", dtype_name(dtype)}, {"shape", shape}, {"bytes", bytes}};
    if (verify) {
      const at::Tensor value = set->value(name);
      row["sha256"] = sha256_of_tensor(value);
      if (const std::string found = non_finite(value); !found.empty())
        notes.push_back(fmt::format("'{}': {}", name, found));
    }
    json["tensors"].push_back(std::move(row));
  }
  bar.reset();
  if (json["tensors"].empty()) throw Error(fmt::format("{}: --layer '{}' matches nothing", file, layer));
  json["notes"] = notes;
  if (!common.quiet) {
    print("{}\n  {} tensors, {}\n\n{}", file, json["tensors"].size(), human_bytes(static_cast<double>(total)),
          Assembled{lines});
    for (const std::string& text : notes) print("note: {}\n", text);
    if (verify) print("verified: every tensor could be read\n");
  }
  if (!common.json.empty()) write_result(common.json, json);
  return 0;
}

}  // namespace parity::cli

// JSON that other tools wrote, told apart by what is in it: transformers' model_addition_debugger_context, Polygraphy's
// RunResults, msprobe's dump.json.
#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "dump/json_file.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

struct JsonFormat {
  bool (*fits)(const OrderedJson& document);
  std::unique_ptr<TensorSet> (*open)(const std::filesystem::path& file, const OrderedJson& document);
};

constexpr std::array kJsonFormats{
    JsonFormat{[](const OrderedJson& d) { return d.contains("module_path"); }, open_debugger_tree},
    JsonFormat{[](const OrderedJson& d) { return d.value("polygraphy_class", "") == "RunResults"; }, open_run_results},
    JsonFormat{[](const OrderedJson& d) { return d.contains("dump_data_dir") && d.contains("data"); },
               open_msprobe_dump},
};

}  // namespace

std::unique_ptr<TensorSet> open_json_set(const std::filesystem::path& file) {
  const OrderedJson document = read_json_file(file);
  try {
    for (const JsonFormat& format : kJsonFormats)
      if (document.is_object() && format.fits(document)) return format.open(file, document);
  } catch (const OrderedJson::exception&) {
    throw Error(fmt::format("{}: has other values than the tool writes that it seems to be of", file.string()));
  }
  throw Error(
      fmt::format("{}: is JSON of no tool that is read here: transformers' model_addition_debugger "
                  "(*_debug_tree_FULL_TENSORS.json), Polygraphy's RunResults, msprobe's dump.json",
                  file.string()));
}

std::string name_of_call(const std::string& path, int call) {
  return call == 0 ? path : fmt::format("{} (call {})", path, call);
}

bool is_tool_json(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  return name == "dump.json" || name.ends_with("_debug_tree_FULL_TENSORS.json");
}

}  // namespace parity

#include "export/formats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "core/error.hpp"
#include "core/plain.hpp"
#include "export/model_explorer.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

using std::filesystem::path;

template <std::string (*text)(const Report&)>
std::vector<path> one_file(const ExportInput& input, const path& place) {
  write_file(place, text(input.report));
  return {place};
}

constexpr std::array kExports{
    ExportFormat{"model-explorer", "graphs of both sides, errors on their nodes, the pairing: a folder of JSON files",
                 true, write_model_explorer},
    ExportFormat{"perfetto", "a trace for ui.perfetto.dev and chrome://tracing: a slice an op, a track a side", false,
                 one_file<report_trace>},
    ExportFormat{"csv", "a table, a row an op", false, one_file<report_csv>},
};

}  // namespace

std::span<const ExportFormat> export_formats() { return kExports; }

const ExportFormat& export_format(std::string_view name) {
  std::vector<std::string_view> names;
  for (const ExportFormat& format : kExports) {
    if (format.name == name) return format;
    names.push_back(format.name);
  }
  throw Error(fmt::format("'{}' is no format to export to; there are {}", plain(name), fmt::join(names, ", ")));
}

}  // namespace parity

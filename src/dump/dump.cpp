#include "dump/dump.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "dump/hdf5.hpp"
#include "dump/link_name.hpp"
#include "dump/stored_values.hpp"

namespace parity {
namespace {

constexpr std::string_view kFormat = "parity-dump/1";

std::vector<std::string> unescaped(std::vector<std::string> names) {
  for (std::string& name : names) name = name_of_link(name);
  return names;
}

std::string required_string(const hdf5::File& file, const char* name) {
  auto text = file.root_string(name);
  if (!text) throw Error(fmt::format("{}: attribute '{}' is missing; record it again", file.path().string(), name));
  return *std::move(text);
}

nlohmann::json parse_event(const hdf5::File& file, std::string_view line, size_t number) {
  nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
  if (!event.is_object() || !event.contains("e") || !event["e"].is_string())
    throw Error(fmt::format("{}: dataset '/trace/events', line {}: is not a JSON object with a kind 'e'",
                            file.path().string(), number));
  return event;
}

// One JSON object a line. The end of an interrupted recording may be a half-written line, or zeros that were never
// written.
std::vector<nlohmann::json> parse_events(const hdf5::File& file, std::string text, bool complete) {
  if (!complete) text.resize(std::min(text.find('\0'), text.rfind('\n') + 1));
  std::vector<nlohmann::json> events;
  for (size_t begin = 0, number = 1; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (end > begin) events.push_back(parse_event(file, std::string_view(text).substr(begin, end - begin), number));
    begin = end + 1;
  }
  return events;
}

// Events reach an interrupted file after the values they name. Where one is missing, the structure was torn in the
// middle of a flush (by a power cut, say, or an older recorder), and what else is found in it cannot be trusted.
void refuse_torn(const hdf5::File& file, const std::vector<nlohmann::json>& events) {
  std::set<std::string> keys;
  for (const nlohmann::json& event : events)
    for_each_stored_key(event, [&](const std::string& key) { keys.insert(key); });
  for (const std::string& key : keys) {
    try {
      file.tensor_type("/values", key);
    } catch (const Error&) {
      throw Error(
          fmt::format("{}: is torn, interrupted in the middle of a write: value '{}', which an event names, "
                      "cannot be found or read; record it again",
                      file.path().string(), key));
    }
  }
}

std::string input_group(int call) { return fmt::format("/inputs/{}", call); }

}  // namespace

struct Dump::Impl {
  explicit Impl(const std::filesystem::path& path, bool trusted = false) : file(path, trusted) {}

  hdf5::File file;
  bool complete = false;
  std::string level, producer, model;
  nlohmann::json provenance;
  std::vector<nlohmann::json> events;
};

Dump::Dump(const std::filesystem::path& path) : Dump(std::make_unique<Impl>(path)) {}

Dump::Dump(const std::filesystem::path& path, const std::filesystem::path& name)
    : Dump(std::make_unique<Impl>(path, /*trusted=*/true)) {
  impl_->file.call(name);
}

Dump::Dump(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  const std::filesystem::path& path = impl_->file.path();
  const hdf5::File& file = impl_->file;
  const auto format = file.root_string("format");
  if (!format)
    throw Error(fmt::format("{}: is an HDF5 file but no recording (attribute 'format' is missing)", path.string()));
  if (*format != kFormat)
    throw Error(
        fmt::format("{}: format '{}' is not '{}', the one this program reads", path.string(), *format, kFormat));
  const auto complete = file.root_integer("complete");
  if (!complete) throw Error(fmt::format("{}: attribute 'complete' is missing; record it again", path.string()));
  impl_->complete = *complete == 1;
  impl_->level = required_string(file, "level");
  impl_->producer = required_string(file, "producer");
  impl_->model = file.root_string("model").value_or("");
  impl_->provenance = nlohmann::json::parse(file.root_string("provenance").value_or("{}"), nullptr, false);
  if (!impl_->provenance.is_object())
    throw Error(fmt::format("{}: attribute 'provenance' is not a JSON object", path.string()));
  impl_->events = parse_events(file, file.bytes("/trace", "events"), impl_->complete);
  if (!impl_->complete) refuse_torn(file, impl_->events);
}

Dump::~Dump() = default;
Dump::Dump(Dump&&) noexcept = default;

const std::filesystem::path& Dump::file() const { return impl_->file.path(); }
bool Dump::complete() const { return impl_->complete; }
const std::string& Dump::level() const { return impl_->level; }
const std::string& Dump::producer() const { return impl_->producer; }
const std::string& Dump::model() const { return impl_->model; }
const nlohmann::json& Dump::provenance() const { return impl_->provenance; }
const std::vector<nlohmann::json>& Dump::events() const { return impl_->events; }

at::Tensor Dump::value(std::string_view key) const { return impl_->file.tensor("/values", key); }
bool Dump::has_value(std::string_view key) const { return impl_->file.has("/values", key); }
std::vector<std::string> Dump::value_keys() const { return impl_->file.names("/values"); }
std::pair<at::ScalarType, std::vector<int64_t>> Dump::value_type(std::string_view key) const {
  return impl_->file.tensor_type("/values", key);
}

std::vector<std::string> Dump::weight_names() const { return unescaped(impl_->file.names("/weights")); }
at::Tensor Dump::weight(std::string_view name) const { return impl_->file.tensor("/weights", link_name(name)); }
bool Dump::has_weight(std::string_view name) const { return impl_->file.has("/weights", link_name(name)); }

std::vector<std::string> Dump::input_names(int call) const { return unescaped(impl_->file.names(input_group(call))); }
at::Tensor Dump::input(std::string_view name, int call) const {
  return impl_->file.tensor(input_group(call), link_name(name));
}
bool Dump::has_input(std::string_view name, int call) const {
  return impl_->file.has(input_group(call), link_name(name));
}

}  // namespace parity

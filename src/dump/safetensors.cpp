// The format (huggingface/safetensors, "Format"): 8 bytes little-endian header length, a JSON header {name: {dtype,
// shape, data_offsets}}, then the data; offsets count from the end of the header and cover the data without holes or
// overlaps.
#include "dump/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "dump/allocate.hpp"
#include "dump/mapped_file.hpp"

namespace parity {
struct SafetensorsEntry {
  std::shared_ptr<MappedFile> file;
  std::string where;  // "model.safetensors: tensor 'a.weight'"
  std::string dtype_text;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;  // bytes from the file's begin
};
using SafetensorsEntries = std::map<std::string, SafetensorsEntry, std::less<>>;

namespace {

using nlohmann::json;

constexpr uint64_t kMostHeader = 100'000'000;  // as the reference implementation has it

struct StoredType {
  std::string_view name;
  at::ScalarType dtype;
};

constexpr std::array kStoredTypes{
    StoredType{"F64", at::kDouble},
    StoredType{"F32", at::kFloat},
    StoredType{"F16", at::kHalf},
    StoredType{"BF16", at::kBFloat16},
    StoredType{"I64", at::kLong},
    StoredType{"I32", at::kInt},
    StoredType{"I16", at::kShort},
    StoredType{"I8", at::kChar},
    StoredType{"U8", at::kByte},
    StoredType{"U16", at::kUInt16},
    StoredType{"U32", at::kUInt32},
    StoredType{"U64", at::kUInt64},
    StoredType{"F8_E4M3", at::kFloat8_e4m3fn},
    StoredType{"F8_E5M2", at::kFloat8_e5m2},
    StoredType{"C64", at::kComplexFloat},
    StoredType{"BOOL", at::kBool},
};

std::optional<at::ScalarType> known_dtype(std::string_view text) {
  for (const StoredType& row : kStoredTypes)
    if (row.name == text) return row.dtype;
  return std::nullopt;
}

uint64_t unsigned_at(const json& number, const std::string& where) {
  if (!number.is_number_unsigned()) throw Error(where + ": shape and data_offsets must be non-negative integers");
  return number.get<uint64_t>();
}

SafetensorsEntry parse_entry(const json& described, const std::string& where, uint64_t data_size) {
  if (!described.is_object() || !described.contains("dtype") || !described["dtype"].is_string() ||
      !described.contains("shape") || !described["shape"].is_array() || !described.contains("data_offsets") ||
      !described["data_offsets"].is_array() || described["data_offsets"].size() != 2)
    throw Error(where + ": the header does not give dtype, shape and two data_offsets");
  SafetensorsEntry entry;
  entry.where = where;
  entry.dtype_text = described["dtype"].get<std::string>();
  uint64_t count = 1;
  bool fits = true, empty = false;
  for (const json& size : described["shape"]) {
    const uint64_t value = unsigned_at(size, where);
    // A zero does not excuse the other sizes.
    fits = fits && value <= INT64_MAX && !__builtin_mul_overflow(count, std::max<uint64_t>(value, 1), &count);
    empty = empty || value == 0;
    entry.shape.push_back(static_cast<int64_t>(value));
  }
  entry.begin = unsigned_at(described["data_offsets"][0], where);
  entry.end = unsigned_at(described["data_offsets"][1], where);
  if (entry.begin > entry.end || entry.end > data_size)
    throw Error(
        fmt::format("{}: data_offsets [{}, {}] lie outside the {} bytes of data; the file is truncated or damaged",
                    where, entry.begin, entry.end, data_size));
  const auto dtype = known_dtype(entry.dtype_text);
  uint64_t bytes = 0;
  if (dtype && (!fits || entry.shape.size() > 64 || __builtin_mul_overflow(count, at::elementSize(*dtype), &bytes) ||
                bytes > INT64_MAX || (empty ? 0 : bytes) != entry.end - entry.begin))
    throw Error(fmt::format("{}: shape and dtype {} do not make the {} bytes of its data_offsets", where,
                            entry.dtype_text, entry.end - entry.begin));
  return entry;
}

json parse_header(const MappedFile& file, const std::string& name, uint64_t& length) {
  if (file.size() < 8) throw Error(name + ": is too short for a safetensors file");
  std::memcpy(&length, file.data(), 8);
  if (length > kMostHeader || length > file.size() - 8)
    throw Error(fmt::format("{}: is no safetensors file, or a truncated one (a header of {} bytes in a file of {})",
                            name, length, file.size()));
  json header = json::parse(std::string_view(file.data() + 8, length), nullptr, false);
  if (!header.is_object()) throw Error(name + ": the safetensors header is not a JSON object");
  return header;
}

void check_cover(std::vector<std::pair<uint64_t, uint64_t>> ranges, uint64_t data_size, const std::string& name) {
  std::sort(ranges.begin(), ranges.end());
  uint64_t expected = 0;
  for (const auto& [begin, end] : ranges) {
    if (begin != expected)
      throw Error(fmt::format("{}: tensors overlap or leave a hole at byte {} of the data", name, expected));
    expected = end;
  }
  if (expected != data_size) throw Error(fmt::format("{}: {} bytes after the last tensor", name, data_size - expected));
}

SafetensorsEntries read_shard(const std::filesystem::path& path) {
  const auto file = std::make_shared<MappedFile>(path);
  const std::string name = path.string();
  uint64_t length = 0;
  const json header = parse_header(*file, name, length);
  const uint64_t data_begin = 8 + length, data_size = file->size() - data_begin;
  SafetensorsEntries entries;
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& [key, described] : header.items()) {
    if (key == "__metadata__") continue;
    SafetensorsEntry entry = parse_entry(described, fmt::format("{}: tensor '{}'", name, key), data_size);
    ranges.emplace_back(entry.begin, entry.end);
    entry.begin += data_begin;
    entry.end += data_begin;
    entry.file = file;
    entries.emplace(key, std::move(entry));
  }
  check_cover(std::move(ranges), data_size, name);
  return entries;
}

SafetensorsEntries read_index(const std::filesystem::path& path) {
  const MappedFile file(path);
  const json index = json::parse(std::string_view(file.data(), file.size()), nullptr, false);
  const std::string name = path.string();
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    throw Error(name + ": is no index of a sharded checkpoint (no object 'weight_map')");
  std::map<std::string, SafetensorsEntries> shards;
  SafetensorsEntries entries;
  for (const auto& [key, shard] : index["weight_map"].items()) {
    const std::string shard_name = shard.is_string() ? shard.get<std::string>() : "";
    if (shard_name.empty() || std::filesystem::path(shard_name).filename() != shard_name || shard_name == "..")
      throw Error(fmt::format("{}: the shard of '{}' is not the name of a file beside it", name, key));
    if (!shards.contains(shard_name)) shards[shard_name] = read_shard(path.parent_path() / shard_name);
    const auto found = shards[shard_name].find(key);
    if (found == shards[shard_name].end())
      throw Error(fmt::format("{}: '{}' is not in its shard {}", name, key, shard_name));
    entries.emplace(key, found->second);
  }
  return entries;
}

}  // namespace

struct Safetensors::Impl {
  std::string file;
  SafetensorsEntries entries;
  std::vector<std::string> names;

  const SafetensorsEntry& at(std::string_view name) const {
    const auto found = entries.find(name);
    if (found == entries.end()) throw Error(fmt::format("{}: no tensor '{}'", file, name));
    return found->second;
  }
};

Safetensors::Safetensors(const std::filesystem::path& file) : impl_(std::make_unique<Impl>()) {
  impl_->file = file.string();
  impl_->entries = file.extension() == ".json" ? read_index(file) : read_shard(file);
  for (const auto& [name, entry] : impl_->entries) impl_->names.push_back(name);
}

Safetensors::~Safetensors() = default;
Safetensors::Safetensors(Safetensors&&) noexcept = default;

const std::vector<std::string>& Safetensors::names() const { return impl_->names; }
bool Safetensors::has(std::string_view name) const { return impl_->entries.contains(name); }
const std::vector<int64_t>& Safetensors::shape(std::string_view name) const { return impl_->at(name).shape; }

at::ScalarType Safetensors::dtype(std::string_view name) const {
  const SafetensorsEntry& entry = impl_->at(name);
  const auto dtype = known_dtype(entry.dtype_text);
  if (!dtype) throw Error(fmt::format("{}: dtype {} cannot be read here", entry.where, entry.dtype_text));
  return *dtype;
}

at::Tensor Safetensors::tensor(std::string_view name) const {
  const SafetensorsEntry& entry = impl_->at(name);
  const at::ScalarType type = dtype(name);
  if (entry.begin == entry.end) return at::empty(entry.shape, type);
  char* data = entry.file->data() + entry.begin;
  const size_t part = at::elementSize(at::isComplexType(type) ? at::toRealValueType(type) : type);
  const bool aligned = reinterpret_cast<uintptr_t>(data) % part == 0;
  at::Tensor tensor = at::empty({0}, type);
  if (aligned) {
    tensor = at::from_blob(
        data, entry.shape, [file = entry.file](void*) {}, type);
  } else {
    tensor = empty_for(entry.shape, type, entry.where);
    if (entry.end > entry.begin) std::memcpy(tensor.mutable_data_ptr(), data, entry.end - entry.begin);
  }
  if (type == at::kBool && tensor.view(at::kByte).gt(1).any().item<bool>())
    throw Error(entry.where + ": says BOOL but holds values other than 0 and 1");
  return tensor;
}

}  // namespace parity

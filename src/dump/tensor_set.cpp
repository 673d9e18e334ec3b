#include "dump/tensor_set.hpp"

#include <fmt/format.h>

#include <array>

#include "core/error.hpp"
#include "dump/link_name.hpp"
#include "dump/tensor_set_formats.hpp"

namespace parity {
namespace {

struct FormatRow {
  std::string_view suffix;
  std::unique_ptr<TensorSet> (*open)(const std::filesystem::path& file);
};

constexpr std::array kFormats{
    FormatRow{".safetensors", open_safetensors_set},
    FormatRow{".safetensors.index.json", open_safetensors_set},
    FormatRow{".npy", open_npy_set},
    FormatRow{".npz", open_npz_set},
    FormatRow{".pt", open_torch_set},
    FormatRow{".pth", open_torch_set},
    FormatRow{".ckpt", open_torch_set},
    FormatRow{".bin", open_torch_set},
    FormatRow{".json", open_json_set},
};

const FormatRow* format_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  for (const FormatRow& row : kFormats)
    if (name.ends_with(row.suffix)) return &row;
  return nullptr;
}

bool is_folder(const std::filesystem::path& place) {
  std::error_code problem;
  return std::filesystem::is_directory(place, problem);
}

bool printable(const std::string& name) {
  for (const char c : name)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) return false;
  return is_text(name);
}

}  // namespace

bool TensorSet::fits(const std::filesystem::path& place) { return is_folder(place) || format_of(place) != nullptr; }

std::unique_ptr<TensorSet> TensorSet::open(const std::filesystem::path& place) {
  const FormatRow* format = format_of(place);
  if (!is_folder(place) && format == nullptr)
    throw Error(fmt::format("{}: is not one of .safetensors, .npz, .npy, .pt, .json", place.string()));
  std::unique_ptr<TensorSet> set = is_folder(place) ? open_folder_set(place) : format->open(place);
  if (set->names().empty()) throw Error(fmt::format("{}: holds no tensor", place.string()));
  return set;
}

void TensorSet::add(const std::string& name, at::ScalarType dtype, std::vector<int64_t> shape) {
  if (!printable(name))
    throw Error(fmt::format("{}: the name of tensor {} is not printable text", file_.string(), names_.size()));
  if (!index_.emplace(name, names_.size()).second)
    throw Error(fmt::format("{}: two tensors are called '{}'", file_.string(), name));
  names_.push_back(name);
  types_.emplace_back(dtype, std::move(shape));
}

std::string TensorSet::where(size_t index) const {
  return fmt::format("{}: tensor '{}'", file_.string(), names_[index]);
}

size_t TensorSet::at(std::string_view name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) throw Error(fmt::format("{}: no tensor '{}'", file_.string(), name));
  return found->second;
}

const std::pair<at::ScalarType, std::vector<int64_t>>& TensorSet::type(std::string_view name) const {
  return types_[at(name)];
}

at::Tensor TensorSet::value(std::string_view name) const {
  const size_t index = at(name);
  at::Tensor tensor = read(index);
  const auto& [dtype, shape] = types_[index];
  if (tensor.scalar_type() != dtype || tensor.sizes() != at::IntArrayRef(shape))
    throw Error(where(index) + " changed while it was read");
  // A C++ bool that is neither 0 nor 1 is undefined behaviour in every kernel.
  if (dtype == at::kBool && tensor.numel() > 0 && tensor.view(at::kByte).gt(1).any().item<bool>())
    throw Error(where(index) + " is bool but holds values other than 0 and 1");
  return tensor;
}

}  // namespace parity

// .pt, .pth, .ckpt, .bin as torch.save writes them since PyTorch 1.6: a zip archive of one pickle and one entry a
// storage.
#include <fmt/format.h>

#include "core/error.hpp"
#include "dump/allocate.hpp"
#include "dump/mapped_file.hpp"
#include "dump/pickle.hpp"
#include "dump/tensor_set_formats.hpp"
#include "dump/zip_file.hpp"

namespace parity {
namespace {

constexpr uint64_t kMostPickle = 64U << 20;  // bytes; that of a 14 B model has 0.2 million

void refuse_legacy(const std::filesystem::path& file) {
  const MappedFile mapped(file);
  if (mapped.size() > 2 && mapped.data()[0] == '\x80' && mapped.data()[1] <= 5)
    throw Error(fmt::format(
        "{}: is a plain pickle or in PyTorch's format before 1.6; load it in Python and torch.save it again",
        file.string()));
}

// "model/data.pkl" -> "model/"
std::string archive_prefix(const ZipFile& zip, const std::filesystem::path& file) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string prefix;
  for (const ZipFile::Entry& entry : zip.entries()) {
    if (!entry.name.ends_with(kPickle) || entry.name.find('/') != entry.name.size() - kPickle.size()) continue;
    if (!prefix.empty()) throw Error(fmt::format("{}: holds more than one data.pkl", file.string()));
    prefix = entry.name.substr(0, entry.name.size() - kPickle.size() + 1);
  }
  if (prefix.empty()) throw Error(fmt::format("{}: holds no data.pkl: torch.save did not write it", file.string()));
  if (zip.find(prefix + "constants.pkl"))
    throw Error(fmt::format("{}: is a TorchScript program, which is never run; save its state_dict()", file.string()));
  return prefix;
}

class TorchSet final : public TensorSet {
 public:
  explicit TorchSet(const std::filesystem::path& file)
      : TensorSet(file), zip_(file), prefix_(archive_prefix(zip_, file)) {
    if (const auto order = zip_.find(prefix_ + "byteorder"); order && zip_.head(*order, 16) != "little")
      throw Error(fmt::format("{}: was saved on a big-endian machine", file.string()));
    const size_t entry = *zip_.find(prefix_ + "data.pkl");
    const uint64_t size = zip_.entries()[entry].size;
    if (size > kMostPickle)
      throw Error(fmt::format("{}: a pickle of {} bytes is not that of a state dict", file.string(), size));
    std::string bytes(size, '\0');
    zip_.read(entry, bytes.data());
    pickle::Contents contents = pickle::read(bytes, file.string());
    for (auto& [name, tensor] : contents.tensors) {
      add(name, tensor.dtype, tensor.shape);
      check_storage(tensor, where(names().size() - 1));
      tensors_.push_back(std::move(tensor));
    }
    if (contents.others > 0) note(fmt::format("left out, not being tensors: {}", contents.others));
  }

 private:
  void check_storage(const pickle::StoredTensor& tensor, const std::string& place) const {
    const auto entry = zip_.find(prefix_ + "data/" + tensor.storage);
    if (!entry) throw Error(fmt::format("{}: its storage '{}' is missing", place, tensor.storage));
    if (const uint64_t there = zip_.entries()[*entry].size; there != static_cast<uint64_t>(tensor.storage_bytes))
      throw Error(fmt::format("{}: its storage '{}' has {} bytes, the pickle says {}", place, tensor.storage, there,
                              tensor.storage_bytes));
  }

  at::Tensor storage(const pickle::StoredTensor& tensor, const std::string& place) const {
    if (tensor.storage == kept_key_) return kept_;
    at::Tensor bytes = empty_for({tensor.storage_bytes}, at::kByte, place);
    zip_.read(*zip_.find(prefix_ + "data/" + tensor.storage), static_cast<char*>(bytes.mutable_data_ptr()), place);
    return bytes;
  }

  at::Tensor read(size_t index) const override {
    const pickle::StoredTensor& tensor = tensors_[index];
    const auto item = static_cast<int64_t>(at::elementSize(tensor.dtype));
    const at::Tensor bytes = storage(tensor, where(index));
    const at::Tensor typed = bytes.slice(0, 0, bytes.numel() / item * item).view(tensor.dtype);
    at::Tensor view = typed.as_strided(tensor.shape, tensor.strides, tensor.offset);
    if (view.numel() == typed.numel()) return view;
    // Many tensors may share one storage (a flattened model): it is kept for the next, which must not see writes to
    // this.
    kept_key_ = tensor.storage, kept_ = bytes;
    return empty_for(tensor.shape, tensor.dtype, where(index)).copy_(view);
  }

  ZipFile zip_;
  std::string prefix_;
  std::vector<pickle::StoredTensor> tensors_;
  mutable std::string kept_key_;
  mutable at::Tensor kept_;
};

}  // namespace

std::unique_ptr<TensorSet> open_torch_set(const std::filesystem::path& file) {
  refuse_legacy(file);
  return std::make_unique<TorchSet>(file);
}

}  // namespace parity

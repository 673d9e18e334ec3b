// .npy: mapped, not copied. .npz: a zip archive of .npy files.
#include <fmt/format.h>

#include "core/error.hpp"
#include "dump/allocate.hpp"
#include "dump/mapped_file.hpp"
#include "dump/npy.hpp"
#include "dump/tensor_set_formats.hpp"
#include "dump/zip_file.hpp"

namespace parity {
namespace {

constexpr const char* kVoid2 = "2-byte voids ('V2') are taken for bfloat16: numpy keeps no other sign of ml_dtypes";

void check_size(const NpyHeader& header, uint64_t size, const std::string& where) {
  const uint64_t there = size - header.data_begin;
  if (there == header.data_bytes) return;
  throw Error(
      fmt::format("{}: the header makes {} bytes of data, {} are there: {}", where, header.data_bytes, there,
                  there < header.data_bytes ? "the file is truncated" : "several arrays in one file are not read"));
}

class NpySet final : public TensorSet {
 public:
  explicit NpySet(const std::filesystem::path& file)
      : TensorSet(file),
        mapped_(std::make_shared<MappedFile>(file)),
        header_(parse_npy({mapped_->data(), std::min(mapped_->size(), kMostNpyHeader)}, file.string())) {
    check_size(header_, mapped_->size(), file.string());
    add(file.stem().string(), header_.dtype, header_.shape);
    if (header_.void2) note(kVoid2);
  }

 private:
  at::Tensor read(size_t) const override {
    char* const data = mapped_->data() + header_.data_begin;
    const auto bytes = static_cast<int64_t>(header_.data_bytes);
    at::Tensor raw = at::from_blob(
        data, {bytes}, [mapped = mapped_](void*) {}, at::kByte);
    // numpy aligns its data to 64 bytes (16 before 1.14); other writers need not.
    if (reinterpret_cast<uintptr_t>(data) % 16 != 0)
      raw = empty_for(raw.sizes(), at::kByte, file().string()).copy_(raw);
    return header_.lay_out(raw);
  }

  std::shared_ptr<MappedFile> mapped_;
  NpyHeader header_;
};

class NpzSet final : public TensorSet {
 public:
  explicit NpzSet(const std::filesystem::path& file) : TensorSet(file), zip_(file) {
    bool void2 = false;
    for (size_t i = 0; i < zip_.entries().size(); ++i) {
      const auto& [name, size] = zip_.entries()[i];
      const std::string where = fmt::format("{}: entry '{}'", file.string(), name);
      if (!name.ends_with(".npy")) throw Error(where + " is no .npy array");
      NpyHeader header = parse_npy(zip_.head(i, kMostNpyHeader), where);
      check_size(header, size, where);
      add(name.substr(0, name.size() - 4), header.dtype, header.shape);
      void2 = void2 || header.void2;
      headers_.push_back(std::move(header));
    }
    if (void2) note(kVoid2);
  }

 private:
  at::Tensor read(size_t index) const override {
    const NpyHeader& header = headers_[index];
    const auto size = static_cast<int64_t>(zip_.entries()[index].size);
    // The header lies in front, out of the way of the data's alignment.
    const auto begin = static_cast<int64_t>(header.data_begin), pad = (64 - begin % 64) % 64;
    const at::Tensor raw = empty_for({pad + size}, at::kByte, where(index));
    zip_.read(index, static_cast<char*>(raw.mutable_data_ptr()) + pad);
    return header.lay_out(raw.slice(0, pad + begin));
  }

  ZipFile zip_;
  std::vector<NpyHeader> headers_;
};

}  // namespace

std::unique_ptr<TensorSet> open_npy_set(const std::filesystem::path& file) { return std::make_unique<NpySet>(file); }
std::unique_ptr<TensorSet> open_npz_set(const std::filesystem::path& file) { return std::make_unique<NpzSet>(file); }

}  // namespace parity

// One dataset of any HDF5 file, read a slice at a time: for arrays larger than memory, such as a clip's frames.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace parity {

class ArrayDataset {
 public:
  /// `name`: a dataset of the root group, or of a recording the first value that was recorded under this path. Throws
  /// Error: no such file or dataset, no numbers, truncated, damaged.
  ArrayDataset(const std::filesystem::path& file, const std::string& name);
  ~ArrayDataset();

  at::ScalarType dtype() const;
  const std::vector<int64_t>& shape() const;
  /// Index `index` of axis `axis`; the other axes remain. Throws Error when unreadable.
  at::Tensor slice(size_t axis, int64_t index) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace parity

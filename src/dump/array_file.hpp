// One array in a file, read a slice at a time: for arrays larger than memory, such as a clip's frames.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace parity {

class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  virtual at::ScalarType dtype() const = 0;
  virtual const std::vector<int64_t>& shape() const = 0;
  /// Index `index` of axis `axis`; the other axes remain. Throws Error when unreadable.
  virtual at::Tensor slice(size_t axis, int64_t index) const = 0;
};

/// By suffix: .npy; .npz, where `name` tells which array unless there is only one (it is unpacked to a temporary file);
/// any HDF5 file, where `name` is a dataset of the root group or, in a recording, the path that the first such value
/// was recorded under. Throws Error: no such file or array, no numbers, Fortran order, truncated, damaged.
std::unique_ptr<ArrayFile> open_array_file(const std::filesystem::path& file, const std::string& name);

std::unique_ptr<ArrayFile> open_hdf5_array(const std::filesystem::path& file, const std::string& name);

}  // namespace parity

// An array in a file, a slice at a time.
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
  /// Index `index` of axis `axis`, without that axis. Throws Error.
  virtual at::Tensor slice(size_t axis, int64_t index) = 0;
};

/// NumPy's format, versions 1 to 3: little endian, C order, uint8, uint16, float16, float32, float64. Throws Error.
std::unique_ptr<ArrayFile> open_npy(const std::filesystem::path& file);
/// The array `name` of a .npz, or its only one; a deflated one is unpacked to a temporary file. Throws Error.
std::unique_ptr<ArrayFile> open_npz(const std::filesystem::path& file, const std::string& name);

/// NumPy's header, of the `size` bytes at `offset` of an open file, which it takes over. `where` begins error messages.
std::unique_ptr<ArrayFile> npy_in(int descriptor, int64_t offset, int64_t size, const std::string& where);

}  // namespace parity

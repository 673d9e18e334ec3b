// The header of a NumPy array file, versions 1 to 3 (numpy.lib.format's documentation). Private to src/dump.
#pragma once
#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <vector>

namespace parity {

struct NpyHeader {
  at::ScalarType dtype = at::kFloat;
  std::vector<int64_t> shape;
  bool fortran_order = false;
  bool void2 = false;       // said to be 2-byte voids: what numpy makes of ml_dtypes.bfloat16; taken for that
  uint64_t data_begin = 0;  // bytes
  uint64_t data_bytes = 0;

  /// The array over `row_major_bytes`: uint8 (data_bytes), as they lie in the file.
  at::Tensor lay_out(const at::Tensor& bytes) const;
};

/// Bytes that hold any header this reads.
constexpr size_t kMostNpyHeader = 12 + 65536;

/// `begin`: the file's first kMostNpyHeader bytes or all of it. Throws Error, beginning with `where`: no .npy,
/// truncated, another version, big-endian, Python objects, records, text, or an impossible shape.
NpyHeader parse_npy(std::string_view begin, const std::string& where);

}  // namespace parity

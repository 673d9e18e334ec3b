// What `torch.save` writes, read without Python and without executing anything: a machine for the pickle opcodes that
// state dicts are made of. LibTorch's own (torch::pickle_load, 2.13) reads neither a state dict with its
// `_metadata` (an internal assertion) nor float8 and uint16 tensors (_rebuild_tensor_v3). Private to src/dump.
#pragma once
#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <vector>

namespace parity::pickle {

/// A tensor as the pickle describes it; its data lies in the archive's entry data/<storage>.
struct StoredTensor {
  at::ScalarType dtype = at::kFloat;
  std::string storage;
  int64_t storage_bytes = 0;            // as the pickle says
  int64_t offset = 0;                   // elements
  std::vector<int64_t> shape, strides;  // strides in elements
};

struct Contents {
  std::vector<std::pair<std::string, StoredTensor>> tensors;  // in order; keys of nested dicts and lists joined by dots
  int64_t others = 0;                                         // leaves that are not tensors: numbers, texts
};

/// Throws Error beginning with `where`: an opcode or a global beyond those of a state dict (named, with its byte), a
/// truncated pickle, one of more than 4 million objects, tensors that do not fit their storage.
Contents read(std::string_view bytes, const std::string& where);

}  // namespace parity::pickle

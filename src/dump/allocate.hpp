// Memory for what a file says it holds: when there is not as much, the error names the file and the entry. Private to
// src/dump.
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>

namespace parity {

/// What `make` gives, which takes `bytes`. Throws Error, beginning with `where`, when less is free or `make` gets less:
/// before the first page is touched, so that a few bytes that claim to unpack to gigabytes cost nothing.
at::Tensor with_memory(uint64_t bytes, const std::string& where, const std::function<at::Tensor()>& make);

/// An uninitialised tensor for them.
at::Tensor empty_for(at::IntArrayRef shape, at::ScalarType dtype, const std::string& where);

/// The same for a text.
std::string text_for(uint64_t bytes, const std::string& where);

}  // namespace parity

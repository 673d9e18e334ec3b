// Weights that are made of others while they are loaded, in pages of their own.
#pragma once
#include <ATen/ATen.h>

namespace parity {

/// Memory mapped for one tensor alone; what the heap has free goes back to the system first. On the heap a weight would
/// lie between what it was made of and the next one's, aligned so that neither fits the other's hole: 130 MB of holes
/// beside the 498 MB of GPT-2 124M. Asks for huge pages, which cost fewer walks through page tables. Throws Error when
/// there is no memory.
at::Tensor empty_in_own_pages(at::IntArrayRef sizes, at::ScalarType dtype);

/// `weight`, contiguous.
at::Tensor in_own_pages(const at::Tensor& weight);

/// Gives what the heap has free back to the system: behind the last weight.
void give_back_free_memory();

}  // namespace parity

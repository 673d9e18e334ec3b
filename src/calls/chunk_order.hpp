// In which order the samples of a batch that is divided into calls lie on the other side.
#pragma once
#include <string>
#include <vector>

#include "calls/division.hpp"

namespace parity {

/// Chunk `i` of a value that is there as a whole.
at::Tensor chunk_of(const at::Tensor& whole, const Chunks& chunks, size_t i);

/// The division whose chunks are nearest in content to what they are chunks of; of one, that. Chunks that may have the
/// whole and do not are put with what is left out: sums over a batch, places of what an expert is given.
Division fitting(std::vector<Division> divisions, const Program& reference, const Dump& dump,
                 const std::vector<CandidateTensor>& tensors);

/// Guidance has no order of its own: one side may run the prompt first, the other the negative prompt. Where the chunks
/// are of one extent along an outermost axis, the smallest stored value whose chunks differ tells which is which: each
/// is much nearer to one chunk of the other side than to the next. All of `division` is put into that order; `notes`
/// says so. Where no value tells the order stays.
void order_chunks(Division& division, const Program& reference, const Dump& dump,
                  const std::vector<CandidateTensor>& tensors, std::vector<std::string>& notes);

}  // namespace parity

// Alignment of two sequences along given links.
#pragma once
#include <cstddef>
#include <vector>

namespace parity {

struct ChainLink {
  size_t candidate, reference;
  double weight;
};

/// Indices of the links of the heaviest chain that ascends strictly in both sequences, in order: the global alignment
/// in which only linked elements may meet and gaps are free. O(n log m) by a tree of prefix maxima (Gusfield 1997, ch.
/// 13). `links` must be sorted by candidate.
std::vector<size_t> heaviest_chain(const std::vector<ChainLink>& links, size_t references);

}  // namespace parity

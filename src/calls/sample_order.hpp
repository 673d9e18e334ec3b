// The samples of a batch in another order: guidance runs [prompt, negative prompt] here, [negative, prompt] there.
#pragma once
#include <string>
#include <vector>

#include "calls/padding_lengths.hpp"
#include "pair/candidate.hpp"
#include "pair/name_map.hpp"

namespace parity {

/// Guidance has no order of its own, and a port may lay the samples of its batch out in another. Where all stored
/// values whose samples differ say one other order, the inputs that both sides recorded among them, the port's batches
/// are put into the reference's; `notes` says so. One value in the reference's order, and they stay as they are: a
/// fault exchanged the others. Names of the port's own take part by shape.
void order_samples(const RecordedSide& reference, const RecordedSide& port, std::vector<CandidateTensor>& tensors,
                   const NameMap* map, std::vector<std::string>& notes);

}  // namespace parity

// Ports that compute the last layers, or the logits alone, for the last token of a prompt.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "pair/candidate.hpp"
#include "pair/last_rows.hpp"
#include "pair/port_pairing.hpp"
#include "trace/program.hpp"

namespace parity {

/// An engine that generates needs the logits of the last token alone, and leaves the others out as early as it can.
/// Where a tensor paired by name has one row, or no such axis, where the reference's has one a token, and everything
/// paired that is computed from it has so, too: from there on the port has the last token alone. The last axis (of
/// features) is never taken for that of the tokens. Changes the shape of tensors without the axis; `pairs`: by name.
/// `notes`: says which.
std::optional<LastRows> last_tokens_by_name(const Program& reference, std::vector<CandidateTensor>& tensors,
                                            const std::vector<PortPair>& pairs, std::vector<std::string>& notes);

/// The same where no name says which tensors are one another; `pairing` is what was found for whole tensors: where an
/// unpaired tensor of the candidate has the content of one token's row of an unpaired value (on the port's own values
/// before it), and nothing paired is computed from that. Throws Error for unusable recordings.
std::optional<LastRows> last_tokens_by_content(const Program& reference, const Dump& dump,
                                               const std::vector<CandidateTensor>& tensors, const PortPairing& pairing,
                                               std::vector<std::string>& notes);

}  // namespace parity

// What other tools and projects call a match, by their own published formulas: to be measured on the same data as our
// verdicts, holes included. Nothing here judges a port.
#pragma once
#include <ATen/ATen.h>

#include <string_view>
#include <vector>

namespace parity {

/// One tensor as each side computed it running freely; the shapes are equal, all three are floating point.
struct PeerInput {
  at::Tensor reference;  // its dtype is the rule's "dtype of the tensors"
  at::Tensor candidate;
  at::Tensor oracle;  // fp64: the reference's program run freely in fp64
};

struct PeerRule {
  std::string_view name, source;
  bool (*passes)(const PeerInput&);
};

/// Every rule, in the order in which it is shown.
const std::vector<PeerRule>& peer_rules();

}  // namespace parity

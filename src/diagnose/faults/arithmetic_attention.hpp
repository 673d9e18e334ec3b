// Fused attention written out, with what is rounded or approximated on the way.
#pragma once
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/number_formats.hpp"

namespace parity {

struct AttentionSteps {
  Rounding query = nullptr, cached = nullptr, probabilities = nullptr;  // nullptr: not rounded
  bool before_division = false;                            // the sum divides after the product with the values
  at::Tensor (*exponential)(const at::Tensor&) = nullptr;  // nullptr: exp
};

bool is_fused_attention(const Op& op);
/// Throws std::runtime_error for arguments of another form.
Results attention_in_steps(OpCall& call, const AttentionSteps& steps);

}  // namespace parity

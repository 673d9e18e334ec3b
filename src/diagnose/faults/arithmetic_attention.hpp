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
/// What a fused attention's scores are multiplied by: `scale`, or 1 / sqrt(width).
double attention_scale(const OpCall& call);
/// Key or value (batch, fewer heads, tokens, width), each head repeated for the queries' `heads` that it serves.
at::Tensor for_queries(const at::Tensor& t, int64_t heads);
/// Scores (batch, heads, queries, keys) with -inf, or the mask's number added, where a fused attention's mask says it.
at::Tensor masked_scores(const OpCall& call, at::Tensor scores);
/// Throws std::runtime_error for arguments of another form.
Results attention_in_steps(OpCall& call, const AttentionSteps& steps);

}  // namespace parity

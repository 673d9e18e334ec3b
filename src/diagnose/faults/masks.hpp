// Which keys attention's queries see.
#pragma once
#include <ATen/ATen.h>

#include "trace/rewrite.hpp"

namespace parity {

/// The argument of a fused attention that holds its mask.
const char* mask_name(const OpCall& call);
/// What a fused attention adds to its scores (batch, heads, queries, keys): 0, a mask's numbers, -inf. Throws
/// std::runtime_error for arguments of another form.
at::Tensor added_to_scores(const OpCall& call);
/// Do scores, or a mask that is added to them, hide the same keys from all queries, as padding is?
bool hides_padding_alone(const at::Tensor& scores);
/// Does a query see nothing that comes after it? The last query and the last key are of one place.
bool is_causal(const at::Tensor& scores);

}  // namespace parity

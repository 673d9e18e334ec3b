// One table of parameter names: the originals' on the left, diffusers' on the right.
#pragma once
#include <string>
#include <string_view>

namespace parity {

/// "blocks.0.self_attn.q.weight" -> "blocks.0.attn1.to_q.weight". A name the table does not know stays as it is.
std::string wan_diffusers_name(std::string_view original);

}  // namespace parity

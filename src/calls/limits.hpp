// Every number that decides how a port's calls, samples and lengths are those of the reference.
#pragma once
#include "core/limit.hpp"

namespace parity {

/// Calls in another order and padding, told by stored values (calls/call_order.cpp, calls/padding_lengths.cpp).
struct CallLimits {
  Constant any_order{8, "calls that may be in any order; more are a sampler's steps, in pairs at most"};
  Constant paths{64, "paths looked at: before one that tells lie a time's embedding and what uses it"};
  Constant telling{1 << 22, "elements of a value at most: what tells prompts apart is small, latents are not"};
  Constant features{64, "of a token's row that are looked at: two tokens' logits differ in all"};
  Constant padded{8, "values, and tensors for each, that are looked at for padding: an embedding is among them"};
};

inline constexpr CallLimits kCallLimits;

}  // namespace parity

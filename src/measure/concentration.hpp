// Where in a tensor a difference lies: one token, one head's channels, one sample. For people who look for its cause.
#pragma once
#include <ATen/ATen.h>

#include <optional>
#include <string>

namespace parity {

struct Concentration {
  double share = 0;     // of the squared difference, at least
  std::string indices;  // as in numpy: "[:, 11]", "[0, :, 32:64]", "[:, 1::2]"
};

/// The places that hold nearly all of the squared difference, where these are at most half of an axis and the
/// reference's own squares do not lie there as well (a large channel is as wrong as the others). nullopt: it is spread,
/// or there is none. Non-finite elements count as 0. Throws Error for shapes that do not agree.
std::optional<Concentration> concentration(const at::Tensor& reference, const at::Tensor& candidate);

}  // namespace parity

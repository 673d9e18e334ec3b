// A port's own order of axes, where shapes do not tell: as many rows as channels.
#pragma once
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "pair/port_pairing.hpp"

namespace parity {

/// Numbers of axes, the candidate's and the reference's: frames may be samples on one side, an axis on the other.
using Axes = std::pair<size_t, size_t>;

/// The order in which a port holds its tensors' axes, by their number: most pairs whose shapes tell are read so.
class UsualOrders {
 public:
  UsualOrders(const PortPairing& pairing, const Program& reference, const std::vector<CandidateTensor>& candidate);

  /// From the candidate's shape to the reference's; nullopt: no order is usual for so many axes, or it gives another
  /// shape.
  std::optional<Layout> layout(at::IntArrayRef reference, at::IntArrayRef candidate) const;

 private:
  std::map<Axes, std::vector<int64_t>> orders_;  // none where they are mostly as they are
};

/// By number of axes: the first of `usual_orders` under which all tensors have their namesakes' shapes, of which
/// several have another as they are. A port's own order, whatever its values; none of two or three axes, nor told by
/// the result.
std::map<size_t, std::vector<int64_t>> orders_by_shapes(const PortPairing& pairing, const Program& reference,
                                                        const std::vector<CandidateTensor>& candidate);

/// Of tensors that hold another value than the reference, and so do not tell how they are read, the port's usual order;
/// and of any that hold the reference's value so alone. Not where a map's rule has steps.
void prefer_usual_layouts(PortPairing& pairing, const Dump& dump, const Program& reference,
                          const std::vector<CandidateTensor>& candidate);

}  // namespace parity

// Which tensor holds which: whole ones first, then fused (q, k, v in one), split and stacked (all layers in one) ones.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "weights/intent.hpp"
#include "weights/side.hpp"
#include "weights/signature.hpp"

namespace parity {

struct Units {
  std::vector<Unit> reference, candidate;
  std::vector<UnitMatch> held;  // by content alone; constant tensors are held by none
  // Not equal but correlated (trained on, quantised, scaled): evidence for names, no more.
  std::vector<UnitMatch> similar;
};

/// Called with what is looked at; several times the number of tensors in all.
using AuditProgress = std::function<void(const std::string&)>;

/// Every tensor is read about twice. What a pair is worth is decided on all its elements; the searches before it use
/// signatures and row sums alone.
Units find_units(const WeightSide& reference, const WeightSide& candidate, const AuditProgress& progress);

}  // namespace parity

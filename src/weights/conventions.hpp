// How a port lays out its tensors, learned from those whose shape tells: is this square one transposed?
#pragma once
#include <map>
#include <string>
#include <vector>

#include "weights/intent.hpp"

namespace parity {

class Conventions {
 public:
  /// A sound pair, before anything is asked.
  void learn(const Unit& reference, const Unit& candidate, const Order& order);

  /// The order that parameters of such names have here; nullopt when shape tells it, or nobody else does.
  /// `why`: "all 24 others of kind weight -> kernel whose shape tells".
  std::optional<Order> expected(const Unit& reference, const Unit& candidate, std::string& why) const;

 private:
  using Counts = std::map<std::string, int>;
  std::map<std::string, Counts> told_, untold_, by_form_;  // by leaf words and rank, or by form
};

/// The permutation of the axes longer than 1 as text: "1,0"; "" for none; "reshaped" where the lengths were exchanged
/// without moving the elements.
std::string order_text(const Unit& reference, const Unit& candidate, const Order& order);

}  // namespace parity

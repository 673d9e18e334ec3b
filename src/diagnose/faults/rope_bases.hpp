// Bases of rotary embeddings that a port may have taken.
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"

namespace parity {

/// A base to try: one that libraries use, or a factor of the recorded one.
struct OtherBase {
  double number;
  bool is_factor;

  std::string words() const;
  /// Throws std::runtime_error where that is the recorded base `own`, or a listed one by a factor.
  double of(double own) const;
};

/// Any other one, whose size is estimated.
inline constexpr OtherBase kSlightlyOther{1 + kTried, true};
inline constexpr const char* kDiffers = "base differs, tried x 1.01";

std::vector<OtherBase> other_bases();
bool is_listed(double base);

/// Kinds of ops that multiply positions and frequencies.
inline constexpr std::array<std::string_view, 3> kAngleProducts{"mul", "bmm", "mm"};

/// Are cos and sin taken, at most so many ops further on, of what op `index`, a product, makes? Then it is positions by
/// frequencies.
bool makes_angles(const ProgramIndex& program, int index, int steps);
inline constexpr int kStepsToAngles = 4;  // twice side by side, unsqueezed, in another dtype

/// The stored numbers that argument `position` of op `index` holds, in another shape or dtype; nullptr.
const Leaf* stored_frequencies(const ProgramIndex& program, int index, size_t position);

/// Are the frequencies of the angles that op `index` makes, or reads, stored in half width? Then a little of another
/// base is what their rounding is.
bool has_rounded_frequencies(const ProgramIndex& program, int index);

}  // namespace parity

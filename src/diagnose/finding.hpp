// A named change of the reference's program, held against a port's difference.
#pragma once
#include <string>
#include <string_view>

#include "core/result.hpp"
#include "measure/evidence.hpp"

namespace parity {

/// The fault that needs no program: all values scaled.
inline constexpr std::string_view kGain = "gain";

/// A named change of the reference's program, and how well the port's difference fits it.
struct Finding : NamedChange {
  Gate gate = Gate::logic;
  bool fixed_amplitude = true;  // the change has no free size: only an amplitude near 1 fits
  Projection fit{};             // of (candidate - recorded) on (changed - unchanged)
  double null_amplitude = 0;    // largest |amplitude| of the null's arithmetics on the same direction
  double rest = 1;  // squared distance from the changed program, over that from the nearest valid arithmetic: below 1
                    // the change is nearer to what the candidate has than any valid arithmetic
  double step = 0;  // of a scaling: what an amplitude of 1 adds to its factor
  double free_size = 0;      // of a change of free size: what it changes before rounding, over the reference's norm
  double noise = 0;          // squared difference between valid arithmetics, of the candidate's
  bool fitted = false;       // of free size, below a rounding, and chosen by which elements round another way
  bool by_elements = false;  // never named by its size alone: of held numbers, or the difference lies in other rows
  bool more_exact = false;   // than the reference: fails nothing that is below every limit
  int rank = 0;              // the lowest is named among those that explain equally well
  double bitwise = -1;  // share of the candidate's elements that the changed program gives bitwise; -1: not measured

  /// Share of the squared difference that the change explains, with its own amplitude where that is free.
  double explained() const { return fixed_amplitude ? fit.explained : fit.correlation * fit.correlation; }
};

}  // namespace parity

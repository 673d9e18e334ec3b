// What lies between a compared value and the compared values before it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace parity {

struct Segment {
  std::vector<size_t> ops;     // indices into Program::ops, ascending
  bool attention = false;      // fused attention, or products of which one weighs with a softmax
  int64_t sum_length = 1;      // longest sum (K of a product, elements under a norm); 1: nothing is summed
  int products = 0;            // matrix products and convolutions
  bool rounds_inside = false;  // to half width, before a product, which spreads each such rounding over a row
  std::string kind;            // op kind in the field's words when one op gives it its name, else ""
  bool arithmetic = false;     // false: only views, copies and casts
  bool draws = false;          // random numbers: replay takes what the reference drew
  bool picks = false;          // an argmax says which: the token that a loop goes on with

  bool identity() const { return ops.empty(); }  // another name of a value compared already
};

}  // namespace parity

// Which calls of the side that runs in chunks are which call of the other's.
#pragma once
#include <vector>

#include "calls/division_passes.hpp"

namespace parity {

using Groups = std::vector<std::vector<size_t>>;  // of calls

struct CallsOfChunks {
  bool anew = false;      // each call runs all that came before anew
  size_t passes = 1;      // how often the model ran as a whole
  ChunksOfPasses counts;  // chunks of each pass, where these are not as many; empty: as many

  size_t all() const;  // with `counts`

  /// For each of `once` calls of a module those of its chunks, of `times`; `anew`: of all up to it.
  Groups of(size_t once, size_t times) const;

 private:
  size_t sum_of_first(size_t passes) const;
};

}  // namespace parity

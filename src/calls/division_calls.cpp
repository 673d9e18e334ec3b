#include "calls/division_calls.hpp"

#include <numeric>

namespace parity {

size_t CallsOfChunks::sum_of_first(size_t some) const {
  return std::accumulate(counts.begin(), counts.begin() + static_cast<long>(some), size_t{0});
}

size_t CallsOfChunks::all() const { return sum_of_first(counts.size()); }

Groups CallsOfChunks::of(size_t once, size_t times) const {
  // A module that is not called as often in each pass (of an encoder and a decoder both) goes with them call by call.
  const size_t modules = once % passes == 0 ? once / passes : 1;
  Groups calls(once);
  for (size_t whole = 0; whole < once; ++whole) {
    const size_t pass = whole / modules, chunks = anew ? pass + 1 : counts.empty() ? times / once : counts.at(pass);
    const size_t first = anew ? 0 : counts.empty() ? pass * chunks : sum_of_first(pass);
    for (size_t chunk = 0; chunk < chunks; ++chunk) calls[whole].push_back((first + chunk) * modules + whole % modules);
  }
  return calls;
}

}  // namespace parity

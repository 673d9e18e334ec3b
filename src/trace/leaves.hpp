// Tensors that no op made, read when needed: those that nobody writes to are converted once for all lanes of a dtype
// and let go between uses that lie far apart (an embedding that is the last product's weight, too). Private to
// src/trace.
#pragma once
#include <map>

#include "trace/flow.hpp"

namespace parity {

class Leaves {
 public:
  Leaves(const Dump& dump, const Program& program, const Flow& flow);

  /// nullptr: an op made it.
  const Leaf* find(int64_t id) const;
  /// As stored, in `dtype`, on the replay's device. Throws Error when the dump has something else than the program
  /// says.
  at::Tensor stored(const Value& value, at::ScalarType dtype);
  /// Is the same tensor handed out to everybody, so that it can be let go and asked for again?
  bool shared(int64_t id) const;
  /// Forgets what nobody holds.
  void sweep();

 private:
  const Dump& dump_;
  const Flow& flow_;
  std::unordered_map<int64_t, const Leaf*> leaves_;
  std::map<std::pair<int64_t, at::ScalarType>, at::Tensor> kept_;
};

}  // namespace parity

// Which inputs and weights a comparison exercises: a comparison of values that do not move with a weight says nothing
// about it (a gate that is zero hides its branch).
#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"
#include "trace/flow.hpp"

namespace parity {

class Exercise {
 public:
  explicit Exercise(const Program& program);

  /// To be called after op `op` has run: what its results move with. `value` gives a value by id, `Error`s included.
  void ran(int op, const std::function<at::Tensor(int64_t id)>& value);

  /// A value is compared here, under that number: what it moves with is kept.
  void reached(size_t boundary, int64_t id);
  /// That comparison shows something.
  void compared(size_t boundary);

  /// Names of the float inputs and weights that compared values are computed from, none of which moves with them.
  std::vector<std::string> hidden() const;
  /// A row that says so; nullopt where there are none.
  std::optional<OpResult> hidden_row() const;

 private:
  using Leaves = std::vector<bool>;  // by index into the program's leaves
  struct Reach {
    Leaves computed_from, moves_with;
  };
  const Reach* find(int64_t id) const;
  int64_t root_of(int64_t id) const;

  const Program& program_;
  const Flow flow_;
  std::unordered_map<int64_t, Reach> reach_;
  std::unordered_map<int64_t, std::vector<int64_t>> names_;  // values by the memory they lie in
  std::unordered_map<size_t, Reach> at_;                     // by boundary
  Leaves used_, exercised_;
};

}  // namespace parity

// Which values of a recorded program are logits: distributions over words (or classes), measured as such.
#pragma once
#include <set>

#include "core/logits.hpp"
#include "core/result.hpp"
#include "trace/program.hpp"

namespace parity {

class ModelLogits {
 public:
  /// The model's results that are called "logits", and a result without a name that is as wide as an embedding
  /// of the model has rows, where that is not the model's own width.
  explicit ModelLogits(const Program& program);

  /// Appends the measured pair when the row's boundary is one of them, and no row of the same value was before it.
  void add(const OpResult& row, const at::Tensor& reference, const at::Tensor& candidate, std::vector<LogitPair>& to);

 private:
  const Program& program_;
  std::set<int64_t> values_;                            // by id
  std::set<std::pair<std::string, int64_t>> measured_;  // dtype of the run, value
};

}  // namespace parity

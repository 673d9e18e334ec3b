// A variant run: only what differs from the replay beside it. Private to src/trace.
#pragma once
#include "trace/lane.hpp"
#include "trace/rewrite.hpp"

namespace parity {

class VariantRun {
 public:
  VariantRun(size_t number, Deviation deviation, const Program& program, const Flow& flow, Lane& lane);
  VariantRun(const VariantRun&) = delete;
  VariantRun& operator=(const VariantRun&) = delete;

  size_t number() const { return number_; }
  bool beside(const Lane& lane) const { return &lane_ == &lane; }
  /// Computes op `op` again if it is rewritten or reads what differs. To be called before the replay's own step where
  /// that writes in place and would change the arguments; after it elsewhere, so that a result that no longer differs
  /// is dropped.
  void step(int op);
  /// After the replay's release: drops what the replay has dropped.
  void release();
  /// The deviating value of a boundary, or undefined.
  at::Tensor at_boundary(size_t boundary) const;
  /// The replay goes on from a given value there, and so does this variant run.
  void exchange(size_t boundary);
  /// Nothing differs any more, and nothing will.
  bool over(int op) const;
  /// Memory of what differs; counted when it has changed.
  int64_t bytes();

 private:
  void take_over(int64_t id);  // own copy of the memory of a value that is about to be written to
  void compute(const Op& op, int index);
  bool as_in_lane(int64_t id, const at::Tensor& result) const;

  size_t number_;
  Deviation deviation_;
  const Program& program_;
  const Flow& flow_;
  Lane& lane_;
  Executor executor_;
  std::unordered_map<int64_t, at::Tensor> differing_;
  std::optional<int64_t> bytes_;  // asked for after every op: 4 % of a self test where always counted
  bool touched_ = false;          // the op at hand reads what differs
  bool dead_ = false;
};

}  // namespace parity

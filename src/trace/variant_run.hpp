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
  /// After the replay's release: drops what the replay has dropped (Lane::dropped).
  void release();
  /// The deviating value of a boundary, or undefined.
  at::Tensor at_boundary(size_t boundary) const;
  /// The replay goes on from a given value there, and so does this variant run.
  void exchange(size_t boundary);
  /// Nothing differs any more, and nothing will.
  bool over(int op) const;
  /// Memory of what differs, views of one memory counted once.
  int64_t bytes() const { return bytes_; }

 private:
  void put(int64_t id, const at::Tensor& value);
  void drop(int64_t id);
  void count(const at::Tensor& value, int uses);  // of its memory: more, or fewer
  void die();
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
  std::unordered_map<const void*, std::pair<int, int64_t>> memory_;  // of differing_: how many values, bytes
  int64_t bytes_ = 0;
  bool touched_ = false;  // the op at hand reads what differs
  bool dead_ = false;
};

}  // namespace parity

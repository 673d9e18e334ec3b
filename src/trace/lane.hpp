// One replay of a program, op by op: several of them can go in step. Private to src/trace.
#pragma once
#include "trace/execute.hpp"
#include "trace/leaves.hpp"
#include "trace/plan.hpp"
#include "trace/replay.hpp"

namespace parity {

class Lane {
 public:
  /// `flow` is analyse_flow(program). Throws Error when [begin, end) lies outside the program.
  Lane(const Dump& dump, const Program& program, const Flow& flow, Leaves& leaves, ReplayOptions options);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;

  int end() const { return end_; }
  bool skips(int op) const { return plan_.steps[op] == Step::skip; }
  size_t first_boundary() const { return plan_.first_boundary; }
  size_t end_boundary() const { return plan_.end_boundary; }
  bool visits(size_t boundary) const { return plan_.visits.empty() || plan_.visits[boundary]; }

  /// Computes op `op`. Throws Error naming the event, path and op.
  void step(int op);
  /// Op `op` did not run, which `problem` says: goes on from its results in `other`, in the replay's dtypes.
  void take_results(int op, Lane& other, const std::string& problem);
  /// Where an op is computed by the recorded kernels on the same memory as in `kernels`, whose turn comes first, its
  /// result is taken from there. Both replay in the recorded dtypes.
  void take_from(const Lane& kernels);
  /// Drops what no later op or boundary reads.
  void release(int op);

  /// The value of a boundary that has just been reached, on the host, conjugate and negative bits resolved.
  at::Tensor at_boundary(size_t boundary);
  /// Goes on from `replacement` there, in the replay's dtype; Arithmetic::exact keeps a wider one (its ops compute in
  /// fp64 anyway, so a port that did not round goes on unrounded). Throws Error when the shape differs.
  void exchange(size_t boundary, const at::Tensor& replacement);
  /// The model itself is about to be called: goes on from its recorded arguments (ReplayOptions::recorded_inputs).
  void begin_call(const ModuleCall& call);
  /// The boundary is done with.
  void leave(size_t boundary);

  /// A value alive, or a leaf (read when first needed). Throws Error when it is neither.
  at::Tensor get(int64_t id);
  /// A leaf without keeping it.
  at::Tensor leaf(int64_t id);
  /// A leaf that lies in the memory of `base`. Throws Error when it reaches beyond that.
  at::Tensor alias_in(const at::Tensor& base, const Leaf& leaf) const;
  /// The same numbers in fp64: converted once an op, however many variant runs read them.
  at::Tensor raised(int64_t id);
  /// An op that is computed in fp64 on this replay's values: by whoever asks first, kept until the op is over.
  Results once(const Op& op, const std::function<Results()>& compute);
  bool alive(int64_t id) const { return values_.contains(id); }
  const std::unordered_map<int64_t, at::Tensor>& values() const { return values_; }
  /// Values that have been let go since `forget_dropped`.
  const std::vector<int64_t>& dropped() const { return dropped_; }
  void forget_dropped() { dropped_.clear(); }
  at::ScalarType recorded_dtype(int64_t id) const { return dtypes_.at(id); }
  const ReplayOptions& options() const { return options_; }
  ReplayReport& report() { return report_; }

 private:
  void drop(int64_t id) { values_.erase(id), dropped_.push_back(id); }
  at::ScalarType redirected(const Value& value) const { return redirect(value.dtype, options_.precision); }
  at::Tensor stored(const Value& value) const;
  bool rereadable(int64_t id) const;  // a leaf that can be let go and read again
  bool used_again_soon(int64_t id, int op) const;
  at::Tensor leaf_value(const Leaf& leaf);
  bool has_own(const Leaf& leaf) const;  // a table that other implementations compute, too
  at::Tensor own_table(const Leaf& leaf);
  at::Tensor adopt(const at::Tensor& tensor, int64_t id) const;
  void take_stored(const Op& op);
  void take_opaque(const Op& op, int index);
  void note_selection(const Op& op, int index);  // other_selection.cpp
  void put(const Value& output, at::Tensor tensor);
  void execute(const Op& op, int index);
  void replace(int64_t id, const at::Tensor& value, const at::Tensor& replacement);
  at::Tensor fitting(const Op& op, const Value& recorded, const at::Tensor& result, bool dynamic);
  at::Tensor filler(const Value& output) const;
  std::optional<Results> computed_in(const Lane& kernels, const Op& op);

  const Dump& dump_;
  const Program& program_;
  const Flow& flow_;
  ReplayOptions options_;
  int end_;
  Executor executor_;
  Plan plan_;
  Leaves& leaves_;
  std::unordered_map<int64_t, at::ScalarType> dtypes_;  // as recorded
  std::unordered_map<int64_t, at::Tensor> values_;      // alive
  std::unordered_map<int64_t, at::Tensor> tables_;      // computed anew, by leaf
  std::vector<int64_t> dropped_;
  std::unordered_map<int64_t, at::Tensor> raised_;  // of this op, leaves left out
  std::pair<const Op*, Results> once_{};            // of this op, in fp64
  std::unordered_set<int64_t> replaced_;            // at boundaries
  ReplayReport report_;
};

/// Are all results of an opaque op in the dump, so that replay can take them?
bool has_stored_results(const Op& op);

}  // namespace parity

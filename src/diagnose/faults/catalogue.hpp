// Named faults and cast placements as rewrites of the recorded program: what a porting engineer gets wrong, op by op.
// Each family is one file with one function; it looks at one op and offers what could be wrong there.
#pragma once
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/result.hpp"
#include "trace/rewrite.hpp"

namespace parity {

struct Reordered;

/// Valid hypotheses that leave a rounding out as a fused kernel does (fused.cpp).
inline constexpr std::string_view kFusedKernel = "fused kernel";

/// One named change of the program, beginning at one op.
struct FaultHypothesis : NamedChange {
  Gate gate = Gate::logic;      // dtype_path for roundings
  bool fixed_amplitude = true;  // false: the size is free (an eps), so any significant amplitude fits
  Deviation deviation{};
  bool exact = false;       // in the reference's dtypes, rounded exactly where it changes something; else in fp64
  int wide_op = -1;         // this op alone is left unrounded
  bool joint = false;       // also tried at all places of the module call together (joint.hpp)
  bool valid = false;       // not a fault but another valid algorithm: part of the null distribution
  int rank = 0;             // among hypotheses that explain equally well the lowest is named
  bool arithmetic = false;  // below the cast (arithmetic.hpp): told from its like by how many elements it gives bitwise
  bool by_elements = false;  // of numbers that are held: it is explained element by element or it is not there
  bool more_exact = false;   // perhaps, than the reference: names what is beyond a limit, and fails nothing below
  bool gross = false;        // moves values by far more than any rounding of their width: other weights altogether
  int64_t statistics = 0;    // it changes so many numbers, each of as many elements behind one another (a group norm's
                             // roots), which sums in another order change as well; 0: not known
  double step = 0;           // of a scaling: what an amplitude of 1 adds to its factor; 0: it scales nothing
  double least = -std::numeric_limits<double>::infinity();  // amplitudes of a free size beyond which there is no such
  double most = std::numeric_limits<double>::infinity();    // change: an eps is positive, and small
};

/// The half-width dtype among the program's boundaries, if any.
std::optional<at::ScalarType> half_of(const Program& program);

/// Where values come from and go to, as recorded: what was put in afterwards (Op::stands_for) is left out. Computed
/// once a program.
class ProgramIndex {
 public:
  explicit ProgramIndex(const Program& program);

  const Program& program() const { return *program_; }
  const Op& op(int index) const { return program_->ops[index]; }
  int size() const { return static_cast<int>(program_->ops.size()); }
  /// Op that made value `id`, -1 for leaves.
  int producer(int64_t id) const;
  /// Ops that read value `id`, ascending.
  const std::vector<int>& consumers(int64_t id) const;
  /// Recorded dtype and shape of value `id`; nullptr when unknown.
  const Value* value(int64_t id) const;
  /// The leaf with that value id, or nullptr.
  const Leaf* leaf(int64_t id) const;
  /// That leaf, or the one that value `id` is at most so many `views` away from, or views and casts; nullptr.
  const Leaf* leaf_behind(int64_t id, int views, bool casts = false) const;
  /// Value ids among op `index`'s arguments, in order.
  const std::vector<int64_t>& reads(int index) const { return reads_[index]; }
  /// Value id of argument number `position`, -1 when it is not a tensor.
  int64_t argument(int index, size_t position) const;
  /// The number at argument `position`, nullopt when it is none.
  std::optional<double> number(int index, size_t position) const;
  /// The first op of kind `kind` reached from op `index` by at most `steps` reads (forward) or productions (backward);
  /// -1: none.
  int ahead(int index, std::string_view kind, int steps) const;
  int behind(int index, std::string_view kind, int steps) const;
  /// The half-width dtype among the program's boundaries, if any.
  std::optional<at::ScalarType> half() const { return half_; }
  /// Of op `index`, for people: "blocks.0/add.1", in a later call of its module "blocks.0/add.1 call 3".
  std::string place(int index) const;

 private:
  int64_t recorded(int64_t id) const;

  const Program* program_;
  std::optional<at::ScalarType> half_;
  std::unordered_map<int64_t, int64_t> stands_for_;  // results of ops that were put in -> recorded values
  std::unordered_map<int64_t, int> producer_;
  std::unordered_map<int64_t, std::vector<int>> consumers_;
  std::unordered_map<int64_t, const Value*> values_;
  std::unordered_map<int64_t, const Leaf*> leaves_;
  std::vector<std::vector<int64_t>> reads_;
};

using Hypotheses = std::vector<FaultHypothesis>;

/// Adds a logic hypothesis that rewrites op `index` alone.
void add_fault(Hypotheses& to, const ProgramIndex& program, int index, std::string fault, std::string what,
               Rewrite rewrite, bool fixed_amplitude = true);

// The families. `index`: the op to look at; only hypotheses whose first rewritten op is `index`.
void norm_eps_faults(const ProgramIndex& program, int index, Hypotheses& to);
void norm_faults(const ProgramIndex& program, int index, Hypotheses& to);
void missing_norm_faults(const ProgramIndex& program, int index, Hypotheses& to);
void linear_faults(const ProgramIndex& program, int index, Hypotheses& to);
void activation_faults(const ProgramIndex& program, int index, Hypotheses& to);
void constant_faults(const ProgramIndex& program, int index, Hypotheses& to);
void gated_faults(const ProgramIndex& program, int index, Hypotheses& to);
void soft_cap_faults(const ProgramIndex& program, int index, Hypotheses& to);
void difference_faults(const ProgramIndex& program, int index, Hypotheses& to);
void elementwise_faults(const ProgramIndex& program, int index, Hypotheses& to);
void position_faults(const ProgramIndex& program, int index, Hypotheses& to);
void attention_faults(const ProgramIndex& program, int index, Hypotheses& to);
void mask_faults(const ProgramIndex& program, int index, Hypotheses& to);
void rope_faults(const ProgramIndex& program, int index, Hypotheses& to);
void rope_table_faults(const ProgramIndex& program, int index, Hypotheses& to);
void rope_angle_faults(const ProgramIndex& program, int index, Hypotheses& to);
void rope_frequency_faults(const ProgramIndex& program, int index, Hypotheses& to);
void cache_faults(const ProgramIndex& program, int index, Hypotheses& to);
void order_faults(const ProgramIndex& program, int index, Hypotheses& to);
void routing_faults(const ProgramIndex& program, int index, Hypotheses& to);
void convolution_faults(const ProgramIndex& program, int index, Hypotheses& to);
void resize_faults(const ProgramIndex& program, int index, Hypotheses& to);
void alibi_faults(const ProgramIndex& program, int index, Hypotheses& to);
void cast_placements(const ProgramIndex& program, int index, Hypotheses& to);
void fused_attention(const ProgramIndex& program, int index, Hypotheses& to);
void fused_bias(const ProgramIndex& program, int index, Hypotheses& to);
void broken_ties(const ProgramIndex& program, int index, Hypotheses& to);

/// Is op `power` the slopes of ALiBi's heads: a power whose exponents count, and no rotary embedding's frequencies?
bool makes_slopes(const ProgramIndex& program, int power);

/// What value `id` is multiplied with in a gated product, act(gate) * up, of which it is the one or the other, each as
/// it was before what is computed element by element; -1: none.
int64_t gated_with(const ProgramIndex& program, int64_t id);
/// Are gate and up taken from value `id`, by one op or `views` more?
bool holds_gate_and_up(const ProgramIndex& program, int64_t id, int views);

/// What it is called that a value of that shape, which op `index` makes (-1: none), has its slices in that order.
std::string order_fault(const ProgramIndex& program, int index, const std::vector<int64_t>& shape,
                        const Reordered& order);

/// Are only elementwise ops computed otherwise, and only by elementwise ops read with what is kept wide? Then nothing
/// of the change comes from a sum that a recorded kernel took in another order.
bool changes_no_sum(const ProgramIndex& program, const FaultHypothesis& hypothesis);

/// Numbers of the replays that variant runs deviate from.
struct ReplaysOfFaults {
  size_t free_size;    // fp64: a direction whose size is estimated
  size_t elementwise;  // the recorded kernels: a port on the same library has the same bits, change and all
  size_t sums;         // exact: a recorded kernel's own rounding must not look like the change
};

class Catalogue {
 public:
  Catalogue(const Program& program, const ReplaysOfFaults& replays);
  std::vector<FaultHypothesis> at(int op) const;
  /// How many those are.
  size_t count(int op) const { return counts_[op]; }
  /// The logic faults alone, as changes of the fp64 replay: for stretches so long that no single rounding of the port
  /// could be predicted.
  std::vector<FaultHypothesis> unrounded_at(int op) const;
  const ProgramIndex& index() const { return index_; }

 private:
  std::vector<FaultHypothesis> of_families(int op) const;
  std::vector<FaultHypothesis> with_joint(int op) const;

  ProgramIndex index_;
  std::map<int, Hypotheses> joint_;  // the same change at several ops, by the first of these
  std::vector<size_t> counts_;       // by op
  ReplaysOfFaults replays_;
};

}  // namespace parity

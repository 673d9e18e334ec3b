// Ops put into a recorded program: behind the one that makes a value, what goes on from it goes on from them.
#pragma once
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "trace/flow.hpp"
#include "trace/program.hpp"

namespace parity {

/// Indices of ops and positions are those of the program as it was, until `apply`: in one pass, however many there are.
class OpInserter {
 public:
  /// `label`: the inserted ops' paths begin with it.
  OpInserter(Program& program, std::string label);

  /// Index of the op that makes the value; -1: none does, or something writes to its memory.
  int op_that_makes(int64_t id) const;
  /// A value like it, not recorded, of this shape.
  Value fresh(const Value& like, std::vector<int64_t> shape);
  /// `beside`: the op in whose module call it runs.
  Op made(const std::string& name, nlohmann::json args, const Value& output, int beside) const;
  /// The same, contiguous.
  Op contiguous_clone(const Value& of, const Value& output, int beside) const;
  /// A value that the inserted ops read: what the dump stores of `whole`.
  Value recorded(const Value& whole);
  /// Behind the op that makes `whole`. Boundaries of it are of `part`, which the first `before` ops make; what is
  /// computed from `whole` is computed from `instead`. Boundaries keep their indices.
  void insert(const Value& whole, const Value& part, const Value& instead, int before, std::vector<Op> ops);
  /// All that was inserted is in the program.
  void apply();
  bool has_part_of(int64_t whole) const { return instead_.contains(whole); }

 private:
  struct Insertion {
    int64_t whole = 0;
    Value part;
    int after = 0, before = 0;  // position; its ops that make the part
    std::vector<Op> ops;
    std::vector<Value> recorded;  // that they read
    int begin = 0;                // of its ops, in the program with all that is inserted
  };

  void move_boundaries(const std::vector<int>& before);
  void insert_ops();

  Program& program_;
  std::string label_;
  const Flow flow_;
  std::unordered_map<int64_t, int> made_by_;  // the op, by its result
  int64_t next_id_ = 0;
  std::unordered_map<int64_t, int64_t> instead_;  // by the whole
  std::vector<Insertion> insertions_;
  std::vector<Value> recorded_;  // read by the ops that are inserted next
};

/// The argument that is this value.
nlohmann::json argument(const Value& value);

/// These values and what is computed from them; not `through_picks`: without what an argmax of them decides alone.
std::set<int64_t> values_from(const Program& program, std::set<int64_t> values, bool through_picks = true);

}  // namespace parity

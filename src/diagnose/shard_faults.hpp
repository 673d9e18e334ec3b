// What went wrong between the ranks of a parallel run: named by putting their parts together otherwise.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.hpp"
#include "ranks/shards.hpp"

namespace parity {

struct ShardFault {
  std::string name, detail;  // "all-reduce missing", "over tp: …"
  Gate gate = Gate::logic;
  double explained = 1;  // share of the squared difference that it takes away
};

/// What a tensor of the ranks is held against, in the candidate's layout.
struct ShardEvidence {
  const ShardedTensor& tensor;
  at::Tensor expected;  // what the reference's program gives on the port's own earlier values
  std::function<bool(const at::Tensor& whole)> passes;  // would this in its place be judged right?
  std::function<std::vector<std::pair<std::string, at::Tensor>>()>
      vectors;  // weights of one axis that were used since the compared values before it, with their names
};

/// Parts of several dtypes, whatever their values.
std::optional<ShardFault> other_dtype(const ShardedTensor& tensor);

/// Copies that are not bitwise equal: an all-reduce that is missing, ranks that diverged, roundings.
ShardFault differing_copies(const ShardEvidence& evidence);

/// A whole that is wrong: ranks in another order, gathered along another axis, summed once too often, a bias added by
/// each rank, a part (or its weights) rounded to a narrower dtype. nullopt: none of these.
std::optional<ShardFault> wrong_whole(const ShardEvidence& evidence);

/// A whole of another shape: gathered along another axis.
std::optional<ShardFault> wrong_shape(const ShardEvidence& evidence);

/// The rank that has (nearly) all of the difference in its part; "" when it is spread over several.
std::string rank_at_fault(const ShardEvidence& evidence);

}  // namespace parity

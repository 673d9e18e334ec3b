// The mapping an audit found as map file rules (pair/name_map.hpp), few: numbers of layers are captured.
#pragma once
#include <string>
#include <vector>

#include "weights/audit.hpp"

namespace parity {

struct Mapping {
  std::vector<std::string> weights;     // "h.{i}.attn.q.weight = layers.{i}.q.kernel perm(1,0)"
  std::vector<std::string> modules;     // "h.{i}.attn.q = layers.{i}.q": the boundaries that follow from them
  std::vector<std::string> left_out;    // modules whose results may be laid out otherwise (permuted convolutions)
  std::vector<std::string> unwritable;  // pairs with names that a map file cannot hold ("a #1")
};

/// Rules that give back every pair exactly: each is tried with NameMap before it is returned. Tied and unsound pairs
/// are included: it is what the candidate is supposed to hold. A part of a fused reference tensor stands on the left:
/// "attn.c_attn.weight split(0,1,3) = attn.k.weight".
Mapping mapping_of(const AuditResult& audit, const WeightSide& reference, const WeightSide& candidate);

/// As a file for `compare --map`.
std::string map_file(const Mapping& mapping, const std::string& reference, const std::string& candidate);

}  // namespace parity

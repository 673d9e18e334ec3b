// What a row says of the ranks whose parts it compares, after it was judged as any other.
#pragma once
#include <functional>
#include <map>
#include <string>

#include "jobs/judged_row.hpp"
#include "pair/port_pairing.hpp"

namespace parity {

class ShardRows {
 public:
  /// `ancestors`: by boundary, the compared ones that it is computed from. Everything stays with the caller.
  ShardRows(const Dump& dump, const Program& program, const std::vector<CandidateTensor>& candidate,
            const PortPairing& pairing, const Thresholds& limits, const std::vector<std::vector<size_t>>& ancestors)
      : dump_(dump),
        program_(program),
        candidate_(candidate),
        pairing_(pairing),
        limits_(limits),
        ancestors_(ancestors) {}

  /// Copies that differ fail the row, whatever its first copy is; a row that is wrong is asked what the ranks did
  /// (diagnose/shard_faults.hpp). Rows that are computed from copies that differ show nothing of their own:
  /// inconclusive. Nothing happens for a tensor that one process recorded.
  void judge(OpResult& row, const PortPair& pair, const RowValues& values);

  /// The same of a row whose shape differs.
  void explain_shape(OpResult& row, const PortPair& pair, const at::Tensor& expected) const;

 private:
  const ShardedTensor* shards_of(const PortPair& pair) const { return candidate_[pair.candidate].shards.get(); }
  const std::string& origin(size_t boundary);
  bool is_reduced(const PortPair& pair, const at::Tensor& value) const;
  std::vector<std::pair<std::string, at::Tensor>> vectors(const Segment& segment) const;

  const Dump& dump_;
  const Program& program_;
  const std::vector<CandidateTensor>& candidate_;
  const PortPairing& pairing_;
  const Thresholds& limits_;
  const std::vector<std::vector<size_t>>& ancestors_;
  std::map<size_t, std::string> origins_;  // by boundary: where copies began to differ that it is computed from
};

/// The same without a program on the reference's side, so that nothing tells what is computed from what.
void judge_plain_shards(OpResult& row, const CandidateTensor& tensor, const Layout& layout,
                        const at::Tensor& reference);

/// "path; tp split(2) by shape": how a pair was found, and the ranks' parts joined.
std::string joined_evidence(const std::string& evidence, const CandidateTensor& tensor);

}  // namespace parity

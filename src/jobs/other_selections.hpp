// Rows behind a selection (which tokens an expert gets) that the candidate's own values decide otherwise than the
// reference's did: a tie of a router's scores that rounding turns over. Later ops hold the sizes of the recorded run,
// so neither shapes nor numbers can be compared there; the scores themselves are compared before.
#pragma once
#include <list>
#include <map>
#include <vector>

#include "core/result.hpp"
#include "core/segment.hpp"
#include "trace/program.hpp"
#include "trace/replay.hpp"

namespace parity {

class OtherSelections {
 public:
  /// `ancestors`: for each boundary the compared ones before it. `found`: on the candidate's values.
  OtherSelections(const Program& program, const std::vector<Segment>& segments,
                  const std::vector<std::vector<size_t>>& ancestors, const std::vector<OtherSelection>& found);

  /// Has this row failed, and is it computed from such a selection? Rows in the order of the program.
  bool concerns(const OpResult& row) const;
  /// A failed row becomes inconclusive; one of another shape only where the shape is that of the candidate's selection.
  void excuse(OpResult& row, const std::vector<int64_t>& candidate_shape);

 private:
  std::vector<const OtherSelection*> behind(size_t boundary) const;
  const OtherSelection* selected_again(const OpResult& row, const std::vector<int64_t>& candidate);

  const Program& program_;
  const std::vector<Segment>& segments_;
  const std::vector<std::vector<size_t>>& ancestors_;
  std::map<size_t, const OtherSelection*> by_op_;
  std::map<size_t, const OtherSelection*> excused_;  // boundaries of another shape
  std::list<OtherSelection> again_;                  // out of what was selected otherwise
};

}  // namespace parity

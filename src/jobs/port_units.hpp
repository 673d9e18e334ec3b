// The units of a comparison by replay: which of them are computed here, and how all of them, in the program's order,
// make the result, whoever computed them.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "jobs/job_result.hpp"
#include "jobs/unit.hpp"
#include "pair/port_pairing.hpp"
#include "trace/program.hpp"

namespace parity {

class PortUnits {
 public:
  /// `shared` nullptr: all units are computed here.
  PortUnits(const Program& program, const PortPairing& pairing, WorkUnits* shared);

  /// Those of boundaries whose work begins at one place that are computed here.
  std::vector<size_t> take(const std::vector<size_t>& together);
  bool mine(size_t boundary);
  void finished(WorkUnit unit);

  /// Rows that are there so far, as they come, in `result`.
  void add_arrived(JobResult& result, const std::function<bool(const OpResult&)>& wanted);
  /// Nothing is left to do here, and the report is written elsewhere.
  bool over() const { return shared_ != nullptr && shared_->over(); }
  bool reports() const { return shared_ == nullptr || shared_->reports(); }

  /// What was said and spent elsewhere before that boundary, in order and once; waits until it is there. `go_on` is
  /// asked meanwhile: Stopped is thrown when it says no.
  using WaitOn = std::function<bool()>;
  void catch_up(size_t boundary, const WaitOn& go_on, const std::function<void(const Aside&)>& apply);
  /// All units in order; waits as `catch_up`.
  std::vector<WorkUnit> all(const WaitOn& go_on);

  const std::vector<std::vector<size_t>>& ancestors() const { return ancestors_; }

 private:
  enum class Whose : char { not_asked, mine, elsewhere };
  WorkUnit await(size_t boundary, const WaitOn& go_on) const;
  void predict(OpResult& row);

  const Program& program_;
  std::vector<size_t> paired_;  // compared boundaries, ascending
  const std::vector<std::vector<size_t>> ancestors_;
  WorkUnits* const shared_;
  std::vector<Whose> whose_;        // by boundary
  std::map<size_t, WorkUnit> own_;  // finished
  std::vector<size_t> just_finished_;
  std::map<int64_t, double> free_error_;  // by boundary
  size_t applied_ = 0;                    // of paired_
};

}  // namespace parity

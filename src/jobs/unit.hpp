// The unit of work of a comparison: one boundary's judged result, computed once, by whichever process and in whichever
// run of the program, then stored and handed over. `--resume` and several processes are both made of this alone.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "jobs/job_result.hpp"

namespace parity {

/// What was said and spent besides the row while it was judged.
struct Aside {
  int64_t directions = 0, given_up = 0;
  std::vector<VariantCoverage> variants;
  std::vector<std::string> warnings;
  double arithmetic_work = 0;                 // of the budget that all rows share (jobs/arithmetic_search.hpp)
  std::vector<std::string> arithmetic_found;  // names that are tried first from here on
};

/// `more` after what `all` has.
void add(Aside& all, Aside more);

struct WorkUnit {
  OpResult row;  // row.index: which unit this is
  std::vector<DtypePath> dtype_paths;
  std::vector<LogitPair> logits;
  Aside aside;
};

/// The unit after those in `result`; `wanted` false: without its row.
void add(JobResult& result, WorkUnit unit, bool wanted);

/// Exact: what is read is what was written, bit by bit. Reading throws Error for what is no unit.
std::string text_of(const WorkUnit& unit);
WorkUnit read_unit(const std::string& text);

/// Thrown through a job that is to end where it is.
struct Stopped {};

/// Where units come from and go to. A job that is given none computes all of them itself.
class WorkUnits {
 public:
  WorkUnits() = default;
  WorkUnits(const WorkUnits&) = delete;
  WorkUnits& operator=(const WorkUnits&) = delete;
  virtual ~WorkUnits() = default;

  /// How many there are in all.
  virtual void expect(size_t units) = 0;
  /// Those of `together` that are to be computed here: asked before anything is spent on them, in the program's order.
  /// WorkUnits whose work begins at the same place are asked for together, and divided; every process names the same
  /// ones.
  virtual std::vector<int64_t> take(const std::vector<int64_t>& together) = 0;
  /// One that was taken is there.
  virtual void finished(const WorkUnit& unit) = 0;
  /// One that was not: nullopt while it is still computed elsewhere. Throws Error for a damaged one.
  virtual std::optional<WorkUnit> find(int64_t index) = 0;
  /// Those finished elsewhere since this was asked last.
  virtual std::vector<int64_t> arrived() = 0;
  /// Is nothing left to be taken, and all that was taken here finished?
  virtual bool over() = 0;
  /// Does this process make the report of all units?
  virtual bool reports() const = 0;
};

}  // namespace parity

#include "jobs/port_units.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

namespace parity {

void add(Aside& all, Aside more) {
  all.directions += more.directions;
  all.given_up += more.given_up;
  all.arithmetic_work += more.arithmetic_work;
  const auto append = [](auto& to, auto& from) { std::move(from.begin(), from.end(), std::back_inserter(to)); };
  append(all.variants, more.variants);
  append(all.warnings, more.warnings);
  append(all.arithmetic_found, more.arithmetic_found);
}

void add(JobResult& result, WorkUnit unit, bool wanted) {
  const auto append = [](auto& to, auto& from) { std::move(from.begin(), from.end(), std::back_inserter(to)); };
  append(result.dtype_paths, unit.dtype_paths);
  append(result.logits, unit.logits);
  if (wanted) result.rows.push_back(std::move(unit.row));
}

PortUnits::PortUnits(const Program& program, const PortPairing& pairing, WorkUnits* shared)
    : program_(program),
      ancestors_(program.marked_ancestors(pairing.marked)),
      shared_(shared),
      whose_(program.boundaries.size(), Whose::not_asked) {
  for (const PortPair& pair : pairing.pairs) paired_.push_back(pair.boundary);
  std::sort(paired_.begin(), paired_.end());
  paired_.erase(std::unique(paired_.begin(), paired_.end()), paired_.end());
  if (shared_ != nullptr) shared_->expect(paired_.size());
}

std::vector<size_t> PortUnits::take(const std::vector<size_t>& together) {
  std::vector<size_t> own = together;
  if (shared_ != nullptr) {
    const std::vector<int64_t> taken = shared_->take({together.begin(), together.end()});
    own.assign(taken.begin(), taken.end());
  }
  for (const size_t b : together) whose_[b] = Whose::elsewhere;
  for (const size_t b : own) whose_[b] = Whose::mine;
  return own;
}

bool PortUnits::mine(size_t boundary) {
  if (whose_[boundary] == Whose::not_asked) take({boundary});
  return whose_[boundary] == Whose::mine;
}

void PortUnits::finished(WorkUnit unit) {
  const auto boundary = static_cast<size_t>(unit.row.index);
  predict(unit.row);
  if (shared_ != nullptr) shared_->finished(unit);
  own_.emplace(boundary, std::move(unit));
  just_finished_.push_back(boundary);
}

void PortUnits::add_arrived(JobResult& result, const std::function<bool(const OpResult&)>& wanted) {
  for (const size_t boundary : std::exchange(just_finished_, {}))
    add(result, own_.at(boundary), wanted(own_.at(boundary).row));
  if (shared_ == nullptr || !shared_->reports()) return;
  for (const int64_t index : shared_->arrived())
    if (auto unit = shared_->find(index)) {
      predict(unit->row);
      const bool shown = wanted(unit->row);
      add(result, std::move(*unit), shown);
    }
}

WorkUnit PortUnits::await(size_t boundary, const WaitOn& go_on) const {
  constexpr std::chrono::milliseconds kBetweenLooks(5);
  if (const auto found = own_.find(boundary); found != own_.end()) return found->second;
  for (;;) {
    if (auto unit = shared_->find(static_cast<int64_t>(boundary))) return std::move(*unit);
    if (!go_on()) throw Stopped{};
    std::this_thread::sleep_for(kBetweenLooks);
  }
}

void PortUnits::catch_up(size_t boundary, const WaitOn& go_on, const std::function<void(const Aside&)>& apply) {
  for (; applied_ < paired_.size() && paired_[applied_] < boundary; ++applied_)
    if (whose_[paired_[applied_]] != Whose::mine) apply(await(paired_[applied_], go_on).aside);
}

std::vector<WorkUnit> PortUnits::all(const WaitOn& go_on) {
  std::vector<WorkUnit> units;
  std::set<int64_t> logits;  // values: a module's result is also its last op's, and measured once
  for (const size_t boundary : paired_) {
    WorkUnit unit = await(boundary, go_on);
    predict(unit.row);
    if (!unit.logits.empty() && !logits.insert(program_.boundaries[boundary].value.id).second) unit.logits.clear();
    units.push_back(std::move(unit));
  }
  return units;
}

// From what is known of the rows before it: all, once every unit is there.
void PortUnits::predict(OpResult& row) {
  if (row.free) free_error_[row.index] = row.free->rel_l2.value_or(0);
  if (!row.amplification) return;
  double carried = 0;
  for (const size_t a : ancestors_[row.index])
    if (const auto found = free_error_.find(static_cast<int64_t>(a)); found != free_error_.end())
      carried = std::max(carried, found->second);
  row.predicted_free = std::hypot(*row.amplification * carried, row.forced->rel_l2.value_or(0));
}

}  // namespace parity

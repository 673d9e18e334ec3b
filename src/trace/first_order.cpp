#include "trace/first_order.hpp"

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/csrc/autograd/autograd.h>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "trace/lane.hpp"
#include "trace/lanes.hpp"
#include "trace/pieces.hpp"
#include "trace/settings.hpp"

namespace parity {
namespace {

using Values = std::map<int64_t, at::Tensor>;

bool differentiable(const at::Tensor& t) { return t.defined() && is_float(t.scalar_type()); }

double inner_product_of(const at::Tensor& a, const at::Tensor& b) {
  const auto flat = [](const at::Tensor& t) {
    return (t.is_complex() ? at::view_as_real(t.resolve_conj()) : t).reshape(-1);
  };
  return at::dot(flat(a), flat(b).to(a.is_complex() ? at::toRealValueType(a.scalar_type()) : a.scalar_type()))
      .item<double>();
}

class FirstOrder {
 public:
  FirstOrder(const Dump& dump, const Program& program, const FirstOrderTask& task,
             const std::vector<Deviation>& changes)
      : dump_(dump),
        program_(program),
        task_(task),
        changes_(changes),
        flow_(analyse_flow(program)),
        leaves_(dump, program, flow_),
        found_(changes.size()) {
    for (size_t c = 0; c < changes.size(); ++c) {
      begins_at_[first(changes[c])].push_back(c);
      for (const auto& [op, rewrite] : changes[c].rewrites) touched_.insert(static_cast<size_t>(op));
    }
    for (const size_t op : task.part->ops) read_.insert(flow_.ops[op].reads.begin(), flow_.ops[op].reads.end());
    read_.insert(target());
  }

  std::vector<std::optional<std::vector<double>>> run() {
    std::vector<std::pair<size_t, size_t>> spans;
    for (const Deviation& change : changes_) spans.emplace_back(first(change), last(change));
    const std::vector<Piece> pieces = pieces_of(program_, flow_, *task_.part, task_.given, spans, task_.piece_bytes);
    std::vector<Values> entering = forwards(pieces);
    backwards_[target()] = task_.directions;
    for (size_t p = pieces.size(); p-- > 0;) {
      back_through(pieces[p], entering[p]);
      measure_changes(pieces[p], entering[p]);
      entering[p].clear();
    }
    return std::move(found_);
  }

 private:
  using Place = std::pair<size_t, size_t>;  // op, output

  int64_t target() const { return program_.boundaries[task_.part->boundaries.front()].value.id; }
  static size_t first(const Deviation& change) { return change.rewrites.begin()->first; }
  static size_t last(const Deviation& change) { return change.rewrites.rbegin()->first; }

  ReplayOptions options(const std::shared_ptr<const ProgramPart>& part, const Values& entering) const {
    ReplayOptions options;
    options.precision = task_.precision;
    options.part = part;
    options.given = task_.given;
    for (const auto& [id, tensor] : entering) options.given[id] = tensor;
    return options;
  }

  // What enters each piece.
  std::vector<Values> forwards(const std::vector<Piece>& pieces) {
    const c10::AutoGradMode no_graph(false);
    Lane lane(dump_, program_, flow_, leaves_, options(task_.part, {}));
    std::vector<Values> entering(pieces.size());
    for (size_t p = 0; p < pieces.size(); ++p) {
      for (const int64_t id : pieces[p].enters) entering[p][id] = lane.get(id);
      if (p + 1 < pieces.size()) run_ops(lane, pieces[p]);
    }
    return entering;
  }

  void run_ops(Lane& lane, const Piece& piece, const std::function<void(size_t)>& after = nullptr) {
    for (const size_t op : piece.ops) {
      lane.step(static_cast<int>(op));
      if (after) after(op);
      lane.release(static_cast<int>(op));
      leaves_.sweep();
    }
  }

  // From the directions at the values that leave a piece to those at the results of its ops and at what enters it.
  void back_through(const Piece& piece, const Values& entering) {
    const c10::AutoGradMode graph(true);
    Values roots;
    for (const auto& [id, tensor] : entering)
      roots[id] = differentiable(tensor) ? tensor.detach().requires_grad_() : tensor;
    const auto part = std::make_shared<ProgramPart>();
    part->ops = piece.ops;
    part->kept = piece.leaves;
    part->kept.push_back(target());
    ReplayOptions with_graph = options(part, roots);
    with_graph.differentiable = true;
    Lane lane(dump_, program_, flow_, leaves_, with_graph);

    std::vector<at::Tensor> inputs;
    std::vector<Place> places;
    run_ops(lane, piece, [&](size_t op) { add_results(lane, op, inputs, places); });
    std::vector<int64_t> ids;
    for (const auto& [id, tensor] : roots)
      if (tensor.requires_grad()) inputs.push_back(tensor), ids.push_back(id);
    at_results_.clear();
    std::map<int64_t, std::vector<at::Tensor>> before;
    for (const std::vector<at::Tensor>& found : derivatives(lane, roots, inputs)) {
      for (size_t i = 0; i < places.size(); ++i)
        if (found[i].defined()) at_results_[places[i]].push_back(found[i]);
      for (size_t i = 0; i < ids.size(); ++i)
        if (found[places.size() + i].defined()) before[ids[i]].push_back(found[places.size() + i]);
    }
    backwards_ = std::move(before);
  }

  // By direction, one an input; undefined where nothing that leaves the piece is computed from it.
  std::vector<std::vector<at::Tensor>> derivatives(Lane& lane, const Values& roots,
                                                   const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> ends;
    std::vector<const std::vector<at::Tensor>*> along;
    for (const auto& [id, directions] : backwards_) {
      const auto passing = roots.find(id);
      if (passing == roots.end() && !lane.alive(id)) continue;
      const at::Tensor end = passing == roots.end() ? lane.get(id) : passing->second;
      if (end.requires_grad()) ends.push_back(end), along.push_back(&directions);
    }
    std::vector<std::vector<at::Tensor>> found;
    for (size_t r = 0; r < task_.directions.size() && !ends.empty() && !inputs.empty(); ++r) {
      std::vector<at::Tensor> given;
      for (size_t e = 0; e < ends.size(); ++e)
        given.push_back((*along[e])[r].to(ends[e].device(), ends[e].scalar_type()));
      found.push_back(torch::autograd::grad(ends, inputs, given, r + 1 < task_.directions.size(), false, true));
    }
    return found;
  }

  // Results of an op that some change begins at or passes through. Memory that is written in place later has no
  // derivative of its own.
  void add_results(Lane& lane, size_t op, std::vector<at::Tensor>& inputs, std::vector<Place>& places) {
    const auto& outputs = program_.ops[op].outputs;
    if (!touched_.contains(op) || !flow_.ops[op].writes.empty()) return;
    for (size_t j = 0; j < outputs.size(); ++j) {
      if (!outputs[j] || !lane.alive(outputs[j]->id) || flow_.written_from(outputs[j]->id, static_cast<int>(op)))
        continue;
      at::Tensor result = lane.get(outputs[j]->id);
      if (!differentiable(result)) continue;
      if (!result.requires_grad()) result.requires_grad_();
      inputs.push_back(result);
      places.emplace_back(op, j);
    }
  }

  // The changed ops of a piece, each run on what it reads, against the directions at its results.
  void measure_changes(const Piece& piece, const Values& entering) {
    if (at_results_.empty()) return;
    const auto part = std::make_shared<ProgramPart>();
    part->ops = piece.ops;
    plain_op_ = -1;
    const DeviationSource source = [&](int op) {
      std::vector<Deviation> started;
      for (const size_t c : begins_at_[static_cast<size_t>(op)])
        if (last(changes_[c]) <= piece.ops.back() && !writes(changes_[c])) started.push_back(measured(c));
      return started;
    };
    replay_in_step(dump_, program_, {options(part, entering)}, nullptr, source);
  }

  bool writes(const Deviation& change) const {
    return std::any_of(change.rewrites.begin(), change.rewrites.end(),
                       [&](const auto& rewrite) { return !flow_.ops[rewrite.first].writes.empty(); });
  }

  // The change with each of its rewrites followed by the measurement of what it did there; it ends with the last one.
  Deviation measured(size_t number) {
    Deviation deviation;
    const auto sums = std::make_shared<std::vector<double>>(task_.directions.size(), 0.);
    for (const auto& [op, rewrite] : changes_[number].rewrites)
      deviation.rewrites[op] = [this, number, sums, op = op, rewrite = rewrite](OpCall& call) {
        const Results plain = plain_results(call, op, first(changes_[number]) == static_cast<size_t>(op));
        const Results changed = rewrite(call);
        add(op, plain, changed, *sums);
        if (last(changes_[number]) != static_cast<size_t>(op)) return changed;
        found_[number] = *sums;
        throw Error("measured");  // ends this run
      };
    return deviation;
  }

  // The op itself on the same arguments; at the first op of a change these are everybody's.
  Results plain_results(const OpCall& call, int op, bool shared) {
    if (!shared) return call.run(call.arguments);
    if (plain_op_ != op) plain_ = call.run(call.arguments);
    plain_op_ = op;
    return plain_;
  }

  void add(int op, const Results& plain, const Results& changed, std::vector<double>& sums) const {
    const auto& outputs = program_.ops[op].outputs;
    for (size_t j = 0; j < outputs.size() && j < plain.size() && j < changed.size(); ++j) {
      if (!outputs[j] || !read_.contains(outputs[j]->id) || !plain[j] || !changed[j]) continue;
      if (plain[j]->sizes() != changed[j]->sizes()) throw Error("has another shape");
      if (changed[j]->is_same(*plain[j]) || at::equal(*plain[j], changed[j]->to(plain[j]->scalar_type()))) continue;
      const auto found = at_results_.find({static_cast<size_t>(op), j});
      if (found == at_results_.end() || found->second.size() != sums.size()) throw Error("has no derivative");
      const at::Tensor moved = changed[j]->to(plain[j]->scalar_type()) - *plain[j];
      for (size_t r = 0; r < sums.size(); ++r) sums[r] += inner_product_of(moved, found->second[r]);
    }
  }

  const Dump& dump_;
  const Program& program_;
  const FirstOrderTask& task_;
  const std::vector<Deviation>& changes_;
  const Flow flow_;
  Leaves leaves_;
  std::unordered_map<size_t, std::vector<size_t>> begins_at_;  // changes by their first op
  std::unordered_set<size_t> touched_;                         // ops that some change computes otherwise
  std::unordered_set<int64_t> read_;                           // values that matter later
  std::map<int64_t, std::vector<at::Tensor>> backwards_;       // at values that leave the piece at hand, by direction
  std::map<Place, std::vector<at::Tensor>> at_results_;        // at results of its ops, by direction
  Results plain_;
  int plain_op_ = -1;
  std::vector<std::optional<std::vector<double>>> found_;
};

}  // namespace

std::vector<std::optional<std::vector<double>>> first_order(const Dump& dump, const Program& program,
                                                            const FirstOrderTask& task,
                                                            const std::vector<Deviation>& changes) {
  // The caller may stand inside a replay, which goes below autograd; autocast is off by default.
  const c10::impl::ForceDispatchKeyGuard with_autograd(c10::default_included_set, c10::default_excluded_set);
  const RecordedSettings settings(dump.provenance());
  try {
    return FirstOrder(dump, program, task, changes).run();
  } catch (const c10::Error& error) {  // autograd's: an op without a derivative
    throw Error(error.what_without_backtrace());
  }
}

}  // namespace parity

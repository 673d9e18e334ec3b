#include "jobs/plain_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "core/glob.hpp"
#include "core/precision.hpp"
#include "jobs/rows.hpp"
#include "jobs/shard_rows.hpp"
#include "judge/plain.hpp"
#include "measure/local.hpp"
#include "measure/measure.hpp"
#include "pair/by_content.hpp"

namespace parity {
namespace {

std::string short_of(at::ScalarType dtype) { return short_dtype_name(dtype); }

void set(OpResult& row, Verdict verdict, std::string text, Gate gate = Gate::structure) {
  row.verdict = verdict;
  row.gate = gate;
  row.diagnosis = std::move(text);
}

class PlainJob {
 public:
  PlainJob(const std::vector<CandidateTensor>& reference, const std::vector<CandidateTensor>& candidate,
           const NameMap* map, const std::string& layer, const GoOn& go_on)
      : reference_(reference), candidate_(candidate), map_(map), layer_(layer), go_on_(go_on) {}

  JobResult run() {
    pair_by_name();
    pair_by_content();
    for (size_t r = 0; r < reference_.size() && !result_.interrupted; ++r) {
      if (matches_layer(reference_[r].path, layer_)) result_.rows.push_back(row(r));
      result_.interrupted = go_on_ && !go_on_(result_);
    }
    for (size_t c = 0; c < candidate_.size(); ++c)
      if (!taken_.contains(c)) result_.coverage.unmatched_candidates.push_back(candidate_[c].path);
    result_.warnings.emplace_back(
        "the reference holds no program: values are compared as they are, and own and inherited errors cannot be told "
        "apart");
    return std::move(result_);
  }

 private:
  struct Partner {
    size_t candidate;
    Layout layout;
    std::string witnesses;
    double confidence = 1;
  };

  void pair_by_name() {
    std::map<std::pair<std::string, int>, size_t> names;
    std::vector<std::string> paths;
    std::vector<NameMap::Name> named;
    for (size_t c = 0; c < candidate_.size(); ++c) names.emplace(std::pair(candidate_[c].path, candidate_[c].call), c);
    for (size_t r = 0; r < reference_.size(); ++r) {
      const CandidateTensor& own = reference_[r];
      paths.push_back(own.path), named.push_back({own.path, own.call});
      const auto target = map_ == nullptr ? std::nullopt : map_->find(own.path, own.call);
      const auto found = names.find(counterpart_of(target, own.path, own.call));
      if (found == names.end()) continue;
      partners_[r] = {found->second, target ? target->layout : Layout{},
                      target ? fmt::format("map line {}", target->line) : "path"};
      taken_.insert(found->second);
    }
    if (map_ == nullptr) return;
    for (NameMap::Name& name : weights_and_owners(paths)) named.push_back(std::move(name));
    map_->require_all_used(named);
  }

  void pair_by_content() {
    if (partners_.size() == reference_.size() || taken_.size() == candidate_.size()) return;
    const auto prints = [](const std::vector<CandidateTensor>& list, Origin origin) {
      std::vector<NamedTensor> out;
      for (const CandidateTensor& t : list)
        out.push_back({t.path, t.call, t.dtype, t.shape, fingerprint_of(t.load(), origin)});
      return out;
    };
    std::vector<std::pair<size_t, size_t>> anchors;
    for (const auto& [r, partner] : partners_) anchors.emplace_back(r, partner.candidate);
    for (const AutoPair& pair :
         pair_automatically(prints(reference_, Origin::reference), prints(candidate_, Origin::model), anchors).pairs)
      if (partners_.emplace(pair.reference, Partner{pair.candidate, pair.layout, pair.evidence, pair.confidence})
              .second)
        taken_.insert(pair.candidate);
  }

  OpResult row(size_t r) {
    const CandidateTensor& reference = reference_[r];
    OpResult row;
    row.index = static_cast<int64_t>(r);
    row.path = reference.path;
    row.call = reference.call;
    row.kind = "tensor";
    row.dtype = row.tensor_dtype = short_of(reference.dtype);
    row.shape = reference.shape;
    row.source = reference.source;
    row.gate = Gate::structure;
    const auto partner = partners_.find(r);
    if (partner == partners_.end()) {
      row.diagnosis = "the candidate has no counterpart";
      ++result_.coverage.uncovered;
      result_.coverage.uncovered_paths.push_back(row.path);
      return row;
    }
    ++result_.coverage.paired;
    const CandidateTensor& candidate = candidate_[partner->second.candidate];
    row.candidate_path = candidate.path;
    row.candidate_source = candidate.source;
    row.paired_by = paired_by(row, joined_evidence(partner->second.witnesses, candidate), partner->second.confidence,
                              partner->second.layout, candidate.call);
    judge(row, reference, partner->second);
    return row;
  }

  void judge(OpResult& row, const CandidateTensor& reference, const Partner& partner) const {
    const at::Tensor expected = reference.load();
    const at::Tensor tensor = candidate_[partner.candidate].load();
    const auto fitting = partner.layout.as_shape(tensor, expected.sizes());
    if (!fitting) return judge_misfit(row, tensor, partner.layout, expected);
    const at::Tensor& value = *fitting;
    if (is_float(expected.scalar_type()) != is_float(value.scalar_type()) ||
        expected.is_complex() != value.is_complex() ||
        (expected.scalar_type() == at::kBool) != (value.scalar_type() == at::kBool))
      return set(row, Verdict::shape,
                 fmt::format("dtype class differs: reference {}, candidate {}", dtype_name(expected.scalar_type()),
                             dtype_name(value.scalar_type())));
    compare_whole(row, expected, value);
    judge_plain_shards(row, candidate_[partner.candidate], partner.layout, expected);
  }

  const std::vector<CandidateTensor>& reference_;
  const std::vector<CandidateTensor>& candidate_;
  const NameMap* map_;
  const std::string& layer_;
  const GoOn& go_on_;
  std::map<size_t, Partner> partners_;  // by reference tensor
  std::set<size_t> taken_;
  JobResult result_;
};

}  // namespace

void compare_whole(OpResult& row, const at::Tensor& reference, const at::Tensor& candidate) {
  row.free = measure(reference, candidate);
  judge_plain(row, reference.scalar_type(), effective_dtype(candidate, reference.scalar_type()));
  // Here everything is one pass over each tensor, and the histogram took 6 % of it (where programs are replayed .02 %).
  if (row.verdict != Verdict::pass) add_spread(row, reference, candidate);
}

JobResult run_plain_job(const std::vector<CandidateTensor>& reference, const std::vector<CandidateTensor>& candidate,
                        const NameMap* map, const std::string& layer, const GoOn& go_on) {
  return PlainJob(reference, candidate, map, layer, go_on).run();
}

}  // namespace parity

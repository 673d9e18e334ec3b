#include "jobs/model_logits.hpp"

#include "measure/logits.hpp"

namespace parity {
namespace {

/// Rows and columns of the weights that words are looked up in.
struct Embeddings {
  std::set<int64_t> rows, columns;
};

Embeddings embeddings_of(const Program& program) {
  Embeddings out;
  std::set<int64_t> weights;
  for (const Op& op : program.ops)
    if (op.name == "aten::embedding" && !op.args.empty() && op.args[0].is_object() && op.args[0].contains("v"))
      weights.insert(op.args[0]["v"].get<int64_t>());
  for (const Leaf& leaf : program.leaves)
    if (weights.contains(leaf.value.id) && leaf.value.shape.size() == 2) {
      out.rows.insert(leaf.value.shape[0]);
      out.columns.insert(leaf.value.shape[1]);
    }
  return out;
}

}  // namespace

ModelLogits::ModelLogits(const Program& program) : program_(program) {
  const Embeddings words = embeddings_of(program);
  for (const ModuleCall& call : program.calls) {
    if (call.parent != -1) continue;
    for (const Value& value : call.outputs) {
      // Of samples and tokens; a picture's classes lie along another axis.
      if (value.nested || value.shape.size() < 2 || value.shape.size() > 3 || value.shape.back() < 2 ||
          !at::isFloatingType(value.dtype))
        continue;
      const bool wide = words.rows.contains(value.shape.back()) && !words.columns.contains(value.shape.back());
      const bool nameless = value.name.find_first_not_of("0123456789") == std::string::npos;  // "0": of a tuple
      if (value.name == "logits" || (nameless && wide)) values_.insert(value.id);
    }
  }
}

void ModelLogits::add(const OpResult& row, const at::Tensor& reference, const at::Tensor& candidate,
                      std::vector<LogitPair>& to) {
  const int64_t id = program_.boundaries[static_cast<size_t>(row.index)].value.id;
  if (!values_.contains(id) || !at::isFloatingType(candidate.scalar_type()) || reference.sizes() != candidate.sizes())
    return;  // the row says so
  if (!measured_.insert({row.dtype, id}).second) return;
  to.push_back(
      {row.reference, row.path, row.candidate_path, row.dtype, measure_logits(reference, candidate), row.call});
}

}  // namespace parity

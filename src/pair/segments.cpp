#include "pair/segments.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "core/dtype_kind.hpp"
#include "core/segment.hpp"
#include "pair/limits.hpp"
#include "trace/flow.hpp"
#include "trace/operator.hpp"

namespace parity {
namespace {

using Shapes = std::map<int64_t, std::vector<int64_t>>;

Shapes shapes_of(const Program& program) {
  Shapes shapes;
  for (const Leaf& leaf : program.leaves) shapes[leaf.value.id] = leaf.value.shape;
  for (const Op& op : program.ops)
    for (const auto& output : op.outputs)
      if (output) shapes.emplace(output->id, output->shape);
  return shapes;
}

const std::vector<int64_t>* shape_of_argument(const Op& op, size_t index, const Shapes& shapes) {
  const auto found = shapes.find(argument_id(op, index));
  return found == shapes.end() || found->second.empty() ? nullptr : &found->second;
}

enum class Sums { last_axis, mat1_last_axis, weight_per_output, whole_over_result, whole_over_statistics };

struct SummingOp {
  std::string_view kind;
  Sums sums;
};
constexpr std::array kSumming{
    SummingOp{"mm", Sums::last_axis},
    SummingOp{"bmm", Sums::last_axis},
    SummingOp{"addmm", Sums::mat1_last_axis},
    SummingOp{"baddbmm", Sums::mat1_last_axis},
    SummingOp{"_grouped_mm", Sums::last_axis},
    SummingOp{"_softmax", Sums::last_axis},
    SummingOp{"convolution", Sums::weight_per_output},
    SummingOp{"sum", Sums::whole_over_result},
    SummingOp{"mean", Sums::whole_over_result},
    SummingOp{"var", Sums::whole_over_result},
    SummingOp{"var_mean", Sums::whole_over_result},
    SummingOp{"native_layer_norm", Sums::whole_over_statistics},
    SummingOp{"_fused_rms_norm", Sums::whole_over_statistics},
    SummingOp{"native_group_norm", Sums::whole_over_statistics},
    SummingOp{"linalg_vector_norm", Sums::whole_over_result},
    SummingOp{"cumsum", Sums::last_axis},
};

int64_t sum_length(const Op& op, const Shapes& shapes) {
  if (op.kind.find("attention") != std::string::npos) {  // over keys, after a product over the head's width
    const auto *query = shape_of_argument(op, 0, shapes), *key = shape_of_argument(op, 1, shapes);
    return query != nullptr && key != nullptr && key->size() > 1 ? std::max(query->back(), (*key)[key->size() - 2]) : 1;
  }
  const auto found =
      std::find_if(kSumming.begin(), kSumming.end(), [&](const SummingOp& s) { return s.kind == op.kind; });
  if (found == kSumming.end()) return 1;
  const size_t index = found->sums == Sums::mat1_last_axis || found->sums == Sums::weight_per_output ? 1 : 0;
  const auto* shape = shape_of_argument(op, index, shapes);
  if (shape == nullptr) return 1;
  if (found->sums == Sums::weight_per_output)
    return c10::multiply_integers(*shape) / std::max<int64_t>(1, shape->front());
  if (found->sums == Sums::last_axis || found->sums == Sums::mat1_last_axis) return shape->back();
  const size_t sums = found->sums == Sums::whole_over_statistics ? 1 : 0;  // mean and rstd stand behind the result
  if (sums == 1 && (op.outputs.size() < 2 || !op.outputs[1])) return shape->back();
  const int64_t results =
      op.outputs.empty() || !op.outputs[sums] ? 1 : std::max<int64_t>(1, op.outputs[sums]->elements());
  return std::max<int64_t>(1, c10::multiply_integers(*shape) / results);
}

bool is_product(const std::string& kind) {
  return kind == "mm" || kind == "addmm" || kind == "bmm" || kind == "baddbmm" || kind == "_grouped_mm" ||
         kind == "convolution";
}

struct Named {
  std::string_view op, kind;
};
// The op that gives a segment its name, the first that is found.
constexpr std::array kNames{Named{"convolution", "conv"},
                            Named{"addmm", "linear"},
                            Named{"mm", "linear"},
                            Named{"native_layer_norm", "layer_norm"},
                            Named{"_fused_rms_norm", "rms_norm"},
                            Named{"native_group_norm", "group_norm"},
                            Named{"rsqrt", "rms_norm"},
                            Named{"gelu", "gelu"},
                            Named{"silu", "silu"},
                            Named{"embedding", "embedding"},
                            Named{"tanh", "gelu"},
                            Named{"_softmax", "softmax"}};

std::string kind_of(const Program& program, const Segment& segment) {
  if (segment.attention) return "attention";
  if (segment.identity()) return "copy";
  if (segment.products > 1) return "";
  const auto has = [&](std::string_view kind) {
    return std::ranges::any_of(segment.ops, [&](size_t op) { return program.ops[op].kind == kind; });
  };
  for (const Named& named : kNames)
    if (has(named.op) && (named.op != "tanh" || has("pow"))) return std::string(named.kind);  // else a gate's tanh
  if (!segment.arithmetic)
    return std::any_of(segment.ops.begin(), segment.ops.end(),
                       [&](size_t op) { return program.ops[op].kind == "_to_copy"; })
               ? "cast"
               : "copy";
  return "elementwise";
}

bool computes(const Op& op) {
  return !op.view && !only_moves(op.kind) && !is_uninitialised(op.kind) && op.kind != "_to_copy" && op.kind != "copy_";
}

// Softmax's results on their way to a product, which makes them attention's weights: moved, cast, masked. A router's
// scores are chosen from first.
class Probabilities {
 public:
  /// `op`: the next one. Is it a product that weighs with them?
  bool weigh(const Op& op) {
    static const std::set<std::string_view> kKeep{"_to_copy", "clone", "_unsafe_view", "native_dropout", "mul",
                                                  "div",      "where", "masked_fill",  "nan_to_num"};
    std::vector<int64_t> read;
    collect_ids(op.args, read);
    const bool reads = std::ranges::any_of(read, [&](int64_t id) { return values_.contains(id); });
    if (op.kind == "_softmax" || (reads && (op.view || kKeep.contains(op.kind))))
      for (const auto& output : op.outputs)
        if (output) values_.insert(output->id);
    return reads && is_product(op.kind);
  }

 private:
  std::set<int64_t> values_;
};

Segment describe(const Program& program, const Shapes& shapes, std::vector<size_t> ops) {
  Segment segment;
  segment.ops = std::move(ops);
  Probabilities probabilities;
  bool weighs = false, rounded = false;
  for (const size_t index : segment.ops) {
    const Op& op = program.ops[index];
    segment.rounds_inside = segment.rounds_inside || (rounded && is_product(op.kind));
    rounded = rounded || (computes(op) && !op.outputs.empty() && op.outputs[0] && is_half(op.outputs[0]->dtype));
    segment.attention = segment.attention || op.kind.find("attention") != std::string::npos;
    weighs = probabilities.weigh(op) || weighs;
    segment.products += is_product(op.kind);
    segment.sum_length = std::max(segment.sum_length, sum_length(op, shapes));
    segment.arithmetic = segment.arithmetic || computes(op);
    segment.draws = segment.draws || op.opaque == kRandom;
    segment.picks = segment.picks || op.kind == "argmax";
  }
  segment.attention = segment.attention || (weighs && segment.products >= 2);
  segment.kind = kind_of(program, segment);
  return segment;
}

}  // namespace

std::vector<double> work_of_ops(const Program& program) {
  const Shapes shapes = shapes_of(program);
  std::vector<double> work;
  for (const Op& op : program.ops) {
    double elements = 0;
    for (const auto& output : op.outputs)
      if (output && !op.view) elements += static_cast<double>(output->elements());
    const bool product = is_product(op.kind) || op.kind.find("attention") != std::string::npos;
    work.push_back(kPairLimits.work.step +
                   elements * (kPairLimits.work.element + (product ? static_cast<double>(sum_length(op, shapes)) : 0)));
  }
  return work;
}

std::vector<Segment> segments_of(const Program& program, const std::vector<bool>& marked) {
  const Shapes shapes = shapes_of(program);
  std::vector<Segment> segments;
  const auto ops = program.ops_since(marked);
  for (size_t b = 0; b < ops.size(); ++b) segments.push_back(marked[b] ? describe(program, shapes, ops[b]) : Segment{});
  return segments;
}

}  // namespace parity

// Sums, products, splits and joins: residuals, gates, "1 +", swapped chunks, positions, comparisons.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

int64_t elements(const ProgramIndex& program, int64_t id) {
  const Value* value = program.value(id);
  if (value == nullptr) return 0;
  int64_t n = 1;
  for (const int64_t extent : value->shape) n *= extent;
  return n;
}

bool holds_floats(const ProgramIndex& program, int64_t id) {
  const Value* value = program.value(id);
  return value != nullptr && parity::is_float(value->dtype);
}

Rewrite only(const char* operand) {
  return [operand](OpCall& call) {
    const at::Tensor kept = call.tensor(operand);
    const std::vector<int64_t> shape = call.op.outputs[0]->shape;
    return Results{kept.expand(shape).clone()};
  };
}

// A learned table of positions: a weight, or a part of one, with a row for each place.
bool is_table(const ProgramIndex& program, int64_t id) {
  const Value* value = program.value(id);
  const Leaf* leaf = program.leaf_behind(id, 2);
  if (value == nullptr || leaf == nullptr || !leaf->is_weight()) return false;
  const size_t rank = value->shape.size();
  return rank >= 2 && value->shape[rank - 2] > 2 && value->shape[rank - 1] > 1;
}

void other_rows(const ProgramIndex& program, int index, const char* operand, Hypotheses& to) {
  for (const int by : {1, -1})
    add_fault(to, program, index, "position off by one", fmt::format("rows of the table {:+d}", by),
              [operand, by](OpCall& call) {
                call.set(operand, call.tensor(operand).roll(by, -2));
                return call.run_again();
              });
}

void sum(const ProgramIndex& program, int index, Hypotheses& to) {
  if (const auto one = program.number(index, 1); one == 1) {
    add_fault(to, program, index, "one plus forgotten", "1 + left out", only("self"));
    return;
  }
  const int64_t left = program.argument(index, 0), right = program.argument(index, 1);
  if (left < 0 || right < 0 || !holds_floats(program, left) || !holds_floats(program, right)) return;
  if (is_table(program, left)) other_rows(program, index, "self", to);
  if (is_table(program, right)) other_rows(program, index, "other", to);
  const int64_t n = elements(program, left), m = elements(program, right);
  const bool leaf = program.leaf(left) != nullptr || program.leaf(right) != nullptr;
  const char* name = n == m && !leaf ? "residual missing" : "missing bias";
  const size_t before = to.size();
  if (n >= m) add_fault(to, program, index, name, "second term left out", only("self"));
  if (m >= n) add_fault(to, program, index, name, "first term left out", only("other"));
  for (size_t i = before; i < to.size(); ++i) to[i].rank = 1;  // a family that knows the op says more
}

// (x W + b) s, of which a port that scales elsewhere forgets the bias: x W s + b.
void bias_not_scaled(const ProgramIndex& program, int index, double factor, Hypotheses& to) {
  constexpr int kViews = 2;
  int made = program.producer(program.argument(index, 0));
  for (int i = 0; i < kViews && made >= 0 && program.op(made).view; ++i)
    made = program.producer(program.argument(made, 0));
  if (made < 0 || program.op(made).kind != "addmm") return;
  const Leaf* bias = program.leaf(program.argument(made, 0));
  if (bias == nullptr || bias->value.shape.size() != 1) return;
  add_fault(to, program, index, "attention scale", "the bias not scaled with the product",
            [id = bias->value.id, factor](OpCall& call) {
              const at::Tensor rows = call.tensor("self"), own = call.leaf(id);
              if (rows.size(-1) != own.size(0)) throw std::runtime_error("taken apart");
              return Results{(rows - own) * factor + own};
            });
}

// Which factor is a learned gain: a weight, of something that has the product's size already. The frequencies of a
// rotary embedding, by positions, are none.
const char* gain_of(const ProgramIndex& program, int index, int64_t left, int64_t right) {
  const int64_t whole = program.op(index).outputs[0]->elements();
  const auto scales = [&](int64_t one, int64_t other) {
    const Leaf* leaf = program.leaf(one);
    return leaf != nullptr && leaf->is_weight() && elements(program, other) == whole;
  };
  return scales(right, left) ? "other" : scales(left, right) ? "self" : nullptr;
}

void product(const ProgramIndex& program, int index, Hypotheses& to) {
  const int64_t left = program.argument(index, 0), right = program.argument(index, 1);
  if (const auto factor = program.number(index, 1); factor && *factor != 1 && holds_floats(program, left)) {
    add_fault(to, program, index, "gain", fmt::format("factor {:g} left out", *factor), only("self"));
    to.back().rank = 1;
    bias_not_scaled(program, index, *factor, to);
    return;
  }
  if (left < 0 || right < 0 || !holds_floats(program, left) || !holds_floats(program, right)) return;
  const int64_t n = elements(program, left), m = elements(program, right);
  const char* weight = gain_of(program, index, left, right);
  const bool leaf = program.leaf(left) != nullptr || program.leaf(right) != nullptr;
  const char* name = weight != nullptr ? "missing norm gain" : leaf ? "gain" : "gate missing";
  if (n >= m) add_fault(to, program, index, name, "second factor left out", only("self"));
  if (m >= n) add_fault(to, program, index, name, "first factor left out", only("other"));
  if (weight != nullptr)
    add_fault(to, program, index, "one plus forgotten", "gain is weight + 1 on one side", [weight](OpCall& call) {
      call.set(weight, call.tensor(weight) + 1);
      return call.run_again();
    });
}

// Does a value shift one at least as large? Scales do so with 1 added, and then multiply it. What is neither (halves of
// a rotation, of a sinusoid) is joined again or meets smaller tables.
bool shifts(const ProgramIndex& program, int64_t id, int steps = 4) {
  for (const int reader : program.consumers(id)) {
    const Op& op = program.op(reader);
    if ((op.kind == "mul" || op.kind == "add" || op.kind == "addcmul") && program.reads(reader).size() > 1) {
      const bool adds = op.kind == "add" || (op.kind == "addcmul" && program.argument(reader, 0) == id);
      for (const int64_t other : program.reads(reader))
        if (adds && other != id && elements(program, other) >= elements(program, id)) return true;
      continue;
    }
    const bool passes = op.view || op.kind == "_to_copy" || op.kind == "add" || op.kind == "clone";
    if (passes && steps > 0 && !op.outputs.empty() && op.outputs[0] && shifts(program, op.outputs[0]->id, steps - 1))
      return true;
  }
  return false;
}

// What is wrong when parts `one` and `other`, taken by op `index`, of a tensor are exchanged. Entries of a table (a
// sampler's sigmas) and the halves of a batch (guidance) scale and shift, too.
const char* exchange_name(const ProgramIndex& program, int index, const Value& one, const Value& other) {
  if (gated_with(program, one.id) == other.id) return "gate and up exchanged";
  if (one.elements() == 1) return "wrong entry";
  const std::string& kind = program.op(index).kind;
  if ((kind == "chunk" || kind == "split") && program.number(index, 2).value_or(0) == 0) return "batch order";
  return shifts(program, one.id) || shifts(program, other.id) ? "shift and scale swapped" : "channel order";
}

// Chunks of one tensor handed out in another order.
void swapped(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const int made = program.producer(program.argument(index, 0));
  const bool projection = made >= 0 &&
                          (program.behind(index, "addmm", 3) >= 0 || program.behind(index, "mm", 3) >= 0) &&
                          program.ahead(index, "view", 1) >= 0;
  for (size_t i = 0; i < op.outputs.size() && op.outputs.size() <= 6; ++i)
    for (size_t j = i + 1; j < op.outputs.size(); ++j) {
      if (!op.outputs[i] || !op.outputs[j] || op.outputs[i]->shape != op.outputs[j]->shape) continue;
      const bool gated = gated_with(program, op.outputs[i]->id) == op.outputs[j]->id;
      add_fault(
          to, program, index,
          projection && !gated ? "weights swapped" : exchange_name(program, index, *op.outputs[i], *op.outputs[j]),
          fmt::format("parts {} and {} exchanged", i, j), [i, j](OpCall& call) {
            Results results = call.run_again();
            std::swap(results[i], results[j]);
            return results;
          });
    }
}

// Two slices or selections of one tensor, of one shape.
void swapped_slices(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const int64_t from = program.argument(index, 0);
  if (from < 0 || op.outputs.empty() || !op.outputs[0]) return;
  for (const int other : program.consumers(from)) {
    const Op& sibling = program.op(other);
    if (other <= index || sibling.name != op.name || sibling.args == op.args || !sibling.outputs[0] ||
        sibling.outputs[0]->shape != op.outputs[0]->shape)
      continue;
    FaultHypothesis h{exchange_name(program, index, *op.outputs[0], *sibling.outputs[0]),
                      program.place(index) + " and " + program.place(other) + " exchanged", ""};
    const auto first = std::make_shared<torch::jit::Stack>();
    // The later one's arguments are literals: read them from its recorded call.
    const auto exchanged = [](const Op& like) {
      return [args = like.args](OpCall& call) {
        for (size_t i = 1; i < args.size() && i < call.arguments.size(); ++i)
          if (args[i].is_number_integer()) call.arguments[i] = args[i].get<int64_t>();
        return call.run_again();
      };
    };
    h.deviation.rewrites[index] = exchanged(sibling);
    h.deviation.rewrites[other] = exchanged(op);
    to.push_back(std::move(h));
  }
}

// Is the value a table of angles, or of their sines and cosines, seen through views?
bool is_rotary(const ProgramIndex& program, int64_t id) {
  for (int steps = 0; steps < 6; ++steps) {
    const int made = program.producer(id);
    if (made < 0) return program.leaf(id) != nullptr;  // stored tables
    const Op& op = program.op(made);
    if (op.kind == "cos" || op.kind == "sin" || op.kind == "polar" || op.kind == "outer") return true;
    if (!op.view && op.kind != "_to_copy") return false;
    id = program.argument(made, 0);
    if (id < 0) return false;
  }
  return false;
}

// Are these parts of one value, or sines and cosines: channels of one tensor, not tensors of their own?
bool are_channels(const ProgramIndex& program, const std::vector<int64_t>& ids) {
  std::set<int64_t> origins;
  bool waves = true;
  for (const int64_t id : ids) {
    const int made = program.producer(id);
    if (made < 0) return false;
    const std::string& kind = program.op(made).kind;
    waves = waves && (kind == "cos" || kind == "sin");
    const bool part = kind == "slice" || kind == "select" || kind == "split" || kind == "chunk" || kind == "unbind";
    origins.insert(part ? program.argument(made, 0) : -1 - id);
  }
  return waves || (origins.size() == 1 && *origins.begin() >= 0);
}

// Equal parts joined in another order.
void joined(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto& ids = program.reads(index);
  const char* general = are_channels(program, ids) ? "channel order" : "concatenation order";
  for (size_t i = 0; i + 1 < ids.size() && ids.size() <= 4; ++i) {
    const Value *a = program.value(ids[i]), *b = program.value(ids[i + 1]);
    if (a == nullptr || b == nullptr || a->shape != b->shape) continue;
    const bool rotary =
        ids.size() == 3 && std::all_of(ids.begin(), ids.end(), [&](int64_t id) { return is_rotary(program, id); });
    add_fault(to, program, index, rotary ? "RoPE axis order" : general,
              fmt::format("parts {} and {} exchanged", i, i + 1), [i](OpCall& call) {
                std::vector<at::Tensor> parts = call.value("tensors").toTensorVector();
                std::swap(parts[i], parts[i + 1]);
                call.set("tensors", parts);
                return call.run_again();
              });
    to.back().joint = rotary;
    to.back().rank = rotary ? 0 : 1;
  }
}

void comparison(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::string& kind = program.op(index).kind;
  const auto other = [&]() -> at::Tensor (*)(const at::Tensor&, const at::Tensor&) {
    if (kind == "le") return [](const at::Tensor& a, const at::Tensor& b) { return a.lt(b); };
    if (kind == "lt") return [](const at::Tensor& a, const at::Tensor& b) { return a.le(b); };
    if (kind == "ge") return [](const at::Tensor& a, const at::Tensor& b) { return a.gt(b); };
    return [](const at::Tensor& a, const at::Tensor& b) { return a.ge(b); };
  }();
  // position > query - window: compared with a position some steps away.
  const auto steps_away = [&](size_t argument) {
    const int made = program.producer(program.argument(index, argument));
    const auto by = made < 0 ? std::nullopt : program.number(made, 1);
    return made >= 0 && (program.op(made).kind == "sub" || program.op(made).kind == "add") && by && std::abs(*by) > 1;
  };
  const char* fault = steps_away(0) || steps_away(1) || std::abs(program.number(index, 1).value_or(0)) > 1
                          ? "window off by one"
                          : "mask off by one";
  add_fault(to, program, index, fault, "strict for not strict, or the other way", [other](OpCall& call) {
    const at::Tensor self = call.tensor("self"), right = call.tensor("other");
    const c10::IValue number = call.value("other");
    return Results{other(self, right.defined() ? right : at::scalar_tensor(number.toScalar(), self.options()))};
  });
  // The other way: a > b + 1 for a > b, a >= b - 1 for a >= b.
  const int by = kind == "gt" || kind == "le" ? 1 : -1;
  add_fault(to, program, index, fault, fmt::format("compared with one place {}", by > 0 ? "later" : "before"),
            [by](OpCall& call) {
              const at::Tensor right = call.tensor("other");
              if (!at::isIntegralType(call.tensor("self").scalar_type(), false)) throw std::runtime_error("no places");
              if (right.defined())
                call.set("other", right + by);
              else
                call.set("other", c10::Scalar(call.value("other").toScalar().toLong() + by));
              return call.run_again();
            });
}

}  // namespace

void elementwise_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const bool one_float = !op.outputs.empty() && op.outputs[0] && at::isFloatingType(op.outputs[0]->dtype);
  if (op.name == "aten::add.Tensor" && one_float) sum(program, index, to);
  if (op.name == "aten::mul.Tensor" && one_float) product(program, index, to);
  if (op.kind == "split" || op.kind == "chunk" || op.kind == "unbind" || op.kind == "split_with_sizes")
    swapped(program, index, to);
  if (op.kind == "slice" || op.kind == "select") swapped_slices(program, index, to);
  if (op.kind == "cat" || op.kind == "stack") joined(program, index, to);
  if (op.kind == "le" || op.kind == "lt" || op.kind == "ge" || op.kind == "gt") comparison(program, index, to);
}

}  // namespace parity

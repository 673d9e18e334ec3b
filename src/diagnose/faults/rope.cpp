// Rotary embeddings: sign, pairing, positions, base, left out; complex products and rotate-half forms.
#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

// x_complex * frequencies.
void complex_product(const ProgramIndex& program, int index, Hypotheses& to) {
  const Value *left = program.value(program.argument(index, 0)), *right = program.value(program.argument(index, 1));
  if (left == nullptr || right == nullptr || !at::isComplexType(left->dtype) || !at::isComplexType(right->dtype))
    return;
  add_fault(to, program, index, "RoPE sign", "rotated the other way", [](OpCall& call) {
    call.set("other", call.tensor("other").conj().resolve_conj());
    return call.run_again();
  });
  add_fault(to, program, index, "RoPE missing", "not rotated",
            [](OpCall& call) { return Results{call.tensor("self").clone()}; });
  for (const int64_t by : {-1, 1})
    for (const int64_t axis : {-2, -3})
      add_fault(to, program, index, "position off by one", fmt::format("positions {:+d}", by),
                [by, axis](OpCall& call) {
                  const at::Tensor table = call.tensor("other");
                  if (table.dim() < -axis || table.size(axis) < 2) throw std::runtime_error("no positions there");
                  call.set("other", table.roll({by}, {axis}));
                  return call.run_again();
                });
}

// cat(-x2, x1), to be multiplied by the sines.
void rotate_half(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto& ids = program.reads(index);
  if (ids.size() != 2) return;
  const int negated = program.producer(ids[0]);
  if (negated < 0 || program.op(negated).kind != "neg") return;
  add_fault(to, program, index, "RoPE sign", "rotated the other way", [](OpCall& call) {
    Results results = call.run_again();
    results[0] = -*results[0];
    return results;
  });
  const auto half = [](OpCall& call) {  // x = [x1, x2] from [-x2, x1]
    const std::vector<at::Tensor> parts = call.value("tensors").toTensorVector();
    return at::cat({parts[1], -parts[0]}, -1);
  };
  // Interleaved pairs (0,1), (2,3), … instead of (i, i + n/2), tables laid out alike.
  const auto interleaved = [half](OpCall& call) {
    const at::Tensor pairs = half(call).unflatten(-1, {-1, 2});
    return Results{at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2)};
  };
  add_fault(to, program, index, "RoPE pairing", "neighbours paired, tables for halves", interleaved);
  // The same with the tables repeated for neighbours: both products change.
  const int sines = program.op(index).outputs[0] ? program.consumers(program.op(index).outputs[0]->id).empty()
                                                       ? -1
                                                       : program.consumers(program.op(index).outputs[0]->id).front()
                                                 : -1;
  if (sines < 0 || program.op(sines).kind != "mul") return;
  const auto respread = [](OpCall& call) {  // (f0 … fn f0 … fn) -> (f0 f0 f1 f1 …)
    const char* name = call.tensor("other").dim() <= call.tensor("self").dim() ? "other" : "self";
    const at::Tensor table = call.tensor(name);
    call.set(name, table.narrow(-1, 0, table.size(-1) / 2).repeat_interleave(2, -1));
    return call.run_again();
  };
  const int slice = program.producer(program.argument(negated, 0));
  const int64_t x = slice < 0 ? -1 : program.argument(slice, 0);
  for (const int cosines : program.consumers(x)) {
    if (program.op(cosines).kind != "mul") continue;
    FaultHypothesis h{"RoPE pairing", "neighbours paired at " + program.path(index), Gate::logic, true, {}};
    h.deviation.rewrites[cosines] = respread;
    h.deviation.rewrites[index] = interleaved;
    h.deviation.rewrites[sines] = respread;
    if (std::min(cosines, index) == index)
      to.push_back(h);
    else
      to.push_back(h);  // begins at the product with the cosines
    FaultHypothesis missing{"RoPE missing", "not rotated at " + program.path(index), Gate::logic, true, {}};
    missing.deviation.rewrites[cosines] = [](OpCall& call) {
      return Results{
          (call.tensor("self").dim() >= call.tensor("other").dim() ? call.tensor("self") : call.tensor("other"))
              .clone()};
    };
    missing.deviation.rewrites[sines] = [](OpCall& call) { return Results{at::zeros_like(*call.run_again()[0])}; };
    to.push_back(std::move(missing));
    break;
  }
}

// Halves or neighbours taken apart: y1 = x1 c - x2 s, y2 = x2 c + x1 s.
struct Rotation {
  int difference = -1, sum = -1;  // ops of y1 and y2
  int cosine = -1;                // x1 c
  int crossed = -1;               // x1 s
  int cosine2 = -1;               // x2 c
};

// The rotation whose y1 is op `index`, a subtraction of two products.
std::optional<Rotation> rotation(const ProgramIndex& program, int index) {
  const int a = program.producer(program.argument(index, 0)), b = program.producer(program.argument(index, 1));
  if (a < 0 || b < 0 || program.op(a).kind != "mul" || program.op(b).kind != "mul") return std::nullopt;
  const auto &left = program.reads(a), &right = program.reads(b);
  if (left.size() != 2 || right.size() != 2) return std::nullopt;
  const int64_t x1 = left[0], c = left[1], x2 = right[0], s = right[1];
  Rotation r{index, -1, a, -1, -1};
  for (const int op : program.consumers(x1))
    if (op > a && program.op(op).kind == "mul" && program.reads(op) == std::vector<int64_t>{x1, s}) r.crossed = op;
  for (const int op : program.consumers(x2))
    if (op > a && program.op(op).kind == "mul" && program.reads(op) == std::vector<int64_t>{x2, c}) r.cosine2 = op;
  if (r.crossed < 0 || r.cosine2 < 0 || !program.op(r.crossed).outputs[0]) return std::nullopt;
  for (const int op : program.consumers(program.op(r.crossed).outputs[0]->id))
    if (program.op(op).kind == "add") r.sum = op;
  return r.sum < 0 ? std::nullopt : std::optional(r);
}

void rotated_parts(const ProgramIndex& program, int product, Hypotheses& to) {
  if (!program.op(product).outputs[0]) return;
  for (const int index : program.consumers(program.op(product).outputs[0]->id)) {
    if (program.op(index).kind != "sub") continue;
    const auto r = rotation(program, index);
    if (!r || r->cosine != product) continue;
    const auto add = [&](const char* fault, const char* what, std::map<int, Rewrite> rewrites) {
      FaultHypothesis h{fault, fmt::format("{} at {}", what, program.path(index)), Gate::logic, true, {}};
      h.deviation.rewrites = std::move(rewrites);
      h.joint = true;
      to.push_back(std::move(h));
    };
    const auto kept1 = std::make_shared<at::Tensor>(), kept2 = std::make_shared<at::Tensor>();
    const auto keep = [](const std::shared_ptr<at::Tensor>& kept) {
      return [kept](OpCall& call) {
        *kept = call.tensor("self");
        return call.run_again();
      };
    };
    const auto give = [](const std::shared_ptr<at::Tensor>& kept) {
      return [kept](OpCall&) { return Results{kept->clone()}; };
    };
    add("RoPE missing", "not rotated",
        {{r->cosine, keep(kept1)}, {r->difference, give(kept1)}, {r->cosine2, keep(kept2)}, {r->sum, give(kept2)}});
    const auto minus = [](OpCall& call) { return Results{-*call.run_again()[0]}; };
    const int sine = program.producer(program.argument(index, 1));  // x2 s
    add("RoPE sign", "rotated the other way", {{sine, minus}, {r->crossed, minus}});
  }
}

// Where the two parts come from: neighbours (…, n/2, 2) taken apart, or halves of the last axis.
void pairing(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.outputs.size() != 2 || !op.outputs[0] || !op.outputs[1] || op.outputs[0]->shape != op.outputs[1]->shape)
    return;
  bool rotates = false;
  for (const int product : program.consumers(op.outputs[0]->id))
    if (program.op(product).kind == "mul" && program.op(product).outputs[0])
      for (const int next : program.consumers(program.op(product).outputs[0]->id))
        rotates = rotates || (program.op(next).kind == "sub" && rotation(program, next).has_value());
  if (!rotates) return;
  // Queries and keys alike may have their channels in any order: their product is the same.
  const bool neighbours = op.kind == "unbind";
  add_fault(to, program, index, "RoPE pairing",
            neighbours ? "halves paired for neighbours" : "neighbours paired for halves", [neighbours](OpCall& call) {
              const at::Tensor self = call.tensor("self");
              if (!neighbours) return Results{self.slice(-1, 0, self.size(-1), 2), self.slice(-1, 1, self.size(-1), 2)};
              const std::vector<at::Tensor> halves = self.flatten(-2).chunk(2, -1);
              return Results{halves.at(0), halves.at(1)};
            });
  to.back().joint = true;
}

// Stored tables of cosines or sines, one row a position: another base, other positions.
void stored_table(const ProgramIndex& program, int index, Hypotheses& to) {
  const Leaf* leaf = program.leaf(program.argument(index, 0));
  if (leaf == nullptr || leaf->value.shape.size() != 2 || leaf->value.shape[0] < 2 ||
      !at::isFloatingType(leaf->value.dtype))
    return;
  // Row 0 is angle 0: cosines are all one, sines all zero.
  const auto is_table = [](const at::Tensor& t) {
    const at::Tensor first = t.select(0, 0);
    if (t.abs().max().item<double>() > 1.0001) return 0;
    return first.eq(1).all().item<bool>() ? 1 : first.eq(0).all().item<bool>() && t.ne(0).any().item<bool>() ? 2 : 0;
  };
  for (const double theta : {256., 1e3, 5e3, 1e4, 2e4, 5e4, 1e5, 5e5, 1e6}) {
    add_fault(to, program, index, "RoPE theta", fmt::format("base {:g}", theta), [is_table, theta](OpCall& call) {
      Results results = call.run_again();
      const int kind = is_table(call.tensor("self"));
      if (kind == 0) throw std::runtime_error("no table");
      for (auto& result : results) {
        const at::Tensor row = result->select(0, 1).to(at::kDouble), f = kind == 1 ? row.acos() : row.asin();
        const int64_t n = f.size(0);
        const bool pairs = n > 1 && std::abs((f[0] - f[1]).item<double>()) < 1e-6;
        const double first = f[0].item<double>(), next = f[pairs ? 2 : 1].item<double>();
        if (n < 4 || !(next > 0) || !(first > 0)) throw std::runtime_error("one frequency only");
        // f_i = base^(-i / h): base from the first two.
        const double own = std::pow(first / next, static_cast<double>(pairs ? n / 2 : n));
        const at::Tensor other = f.pow(std::log(theta) / std::log(own));
        const at::Tensor angles = at::arange(result->size(0), other.options()).unsqueeze(1) * other;
        result = kind == 1 ? angles.cos() : angles.sin();
      }
      return results;
    });
    to.back().joint = true;
  }
  for (const int64_t by : {-1, 1}) {
    add_fault(to, program, index, "position off by one", fmt::format("positions {:+d}", by),
              [is_table, by](OpCall& call) {
                Results results = call.run_again();
                if (is_table(call.tensor("self")) == 0) throw std::runtime_error("no table");
                for (auto& result : results) result = result->roll({by}, {0});
                return results;
              });
    to.back().joint = true;
  }
}

// One axis of positions read from another row on.
void shifted_rows(const ProgramIndex& program, int index, Hypotheses& to) {
  const int made = program.producer(program.argument(index, 0));
  const bool table = program.leaf(program.argument(index, 0)) != nullptr ||
                     (made >= 0 && program.op(made).view && program.leaf(program.argument(made, 0)) != nullptr);
  if (!table || program.number(index, 1).value_or(0) != 0) return;
  add_fault(to, program, index, "position off by one", "positions of one axis + 1", [](OpCall& call) {
    const at::Tensor self = call.tensor("self");
    const int64_t rows = call.run_again()[0]->size(0);
    if (self.size(0) <= rows) return Results{self.slice(0, 0, rows).roll({-1}, {0})};
    return Results{self.slice(0, 1, rows + 1)};
  });
}

// Angles (positions, frequencies): what cos and sin are taken of.
void angles(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const int64_t input = program.argument(index, 0);
  int other = -1;
  for (const int reader : program.consumers(input))
    if (reader != index && (program.op(reader).kind == "cos" || program.op(reader).kind == "sin")) other = reader;
  if (other >= 0 && other < index) return;  // offered at the first of the two
  const Value* value = program.value(input);
  if (value == nullptr || value->shape.size() < 2) return;
  const auto add = [&](const char* fault, const std::string& what,
                       const std::function<at::Tensor(const at::Tensor&)>& change) {
    FaultHypothesis h{fault, fmt::format("{} at {}", what, op.path), Gate::logic, true, {}};
    const auto rewrite = [change](OpCall& call) {
      call.set("self", change(call.tensor("self")));
      return call.run_again();
    };
    h.deviation.rewrites[index] = rewrite;
    if (other >= 0) h.deviation.rewrites[other] = rewrite;
    to.push_back(std::move(h));
  };
  const auto step = [](const at::Tensor& a) { return (a.narrow(-2, 1, 1) - a.narrow(-2, 0, 1)); };
  add("position off by one", "positions + 1", [step](const at::Tensor& a) { return a + step(a); });
  add("position off by one", "positions - 1", [step](const at::Tensor& a) { return a - step(a); });
  for (const double theta : {1e4, 1e5, 1.5e5, 2.5e5, 5e5, 1e6})
    add("RoPE theta", fmt::format("base {:g}", theta), [step, theta](const at::Tensor& a) {
      const at::Tensor f = step(a).abs();
      const int64_t n = f.size(-1);
      if (n < 2 || a.size(-2) < 2) throw std::runtime_error("one frequency only");
      // f_i = base^(-i/h): the ratio of the first two gives the base.
      const at::Tensor ratio = (f.narrow(-1, 1, 1) / f.narrow(-1, 0, 1)).log().abs();
      const at::Tensor flat = ratio.flatten();
      const double h_step = flat[0].item<double>();
      if (!(h_step > 0)) throw std::runtime_error("no frequencies");
      const int64_t half = f.select(-1, 0).equal(f.select(-1, n / 2)) ? n / 2 : n;  // cat(angles, angles)
      const double own = std::exp(h_step * static_cast<double>(half));
      return a * f.pow(std::log(theta) / std::log(own) - 1);
    });
}

}  // namespace

void rope_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const size_t before = to.size();
  if (op.name == "aten::mul.Tensor") complex_product(program, index, to);
  if (op.name == "aten::mul.Tensor") rotated_parts(program, index, to);
  if (op.kind == "unbind" || op.kind == "split" || op.kind == "chunk") pairing(program, index, to);
  if (op.kind == "split_with_sizes" || op.kind == "split") stored_table(program, index, to);
  if (op.kind == "slice") shifted_rows(program, index, to);
  if (op.kind == "cos" || op.kind == "sin") angles(program, index, to);
  if (op.name == "aten::mul.Tensor") {  // the product with the cosines comes first: look for the halves beside it
    for (const int64_t x : program.reads(index))
      for (const int slice : program.consumers(x)) {
        if (program.op(slice).kind != "slice" || program.op(slice).outputs.empty() || !program.op(slice).outputs[0])
          continue;
        for (const int neg : program.consumers(program.op(slice).outputs[0]->id)) {
          if (program.op(neg).kind != "neg") continue;
          for (const int cat : program.consumers(program.op(neg).outputs[0]->id))
            if (cat > index && program.op(cat).kind == "cat") rotate_half(program, cat, to);
        }
      }
  }
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // queries and keys
}

}  // namespace parity

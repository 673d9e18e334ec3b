// Rotary embeddings: sign, pairing, left out; complex products and rotate-half forms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

// Of real and imaginary parts side by side, the first half paired with the second, and put back in their places.
at::Tensor halves_rotated(const at::Tensor& x, const at::Tensor& frequencies) {
  const std::vector<at::Tensor> halves = at::view_as_real(x.contiguous()).flatten(-2).chunk(2, -1);
  const at::Tensor rotated = at::complex(halves.at(0).contiguous(), halves.at(1).contiguous()) * frequencies;
  const at::Tensor joined = at::cat({at::real(rotated), at::imag(rotated)}, -1);
  return at::view_as_complex(joined.unflatten(-1, {-1, 2}).contiguous());
}

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
  add_fault(to, program, index, "RoPE pairing", "halves paired for neighbours, and stored as halves",
            [](OpCall& call) { return Results{halves_rotated(call.tensor("self"), call.tensor("other"))}; });
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

// Interleaved pairs (0,1), (2,3), … instead of (i, i + n/2), in place of cat(-x2, x1).
Results paired_with_neighbours(OpCall& call) {
  const std::vector<at::Tensor> parts = call.value("tensors").toTensorVector();
  const at::Tensor pairs = at::cat({parts[1], -parts[0]}, -1).unflatten(-1, {-1, 2});  // of x = [x1, x2]
  return {at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2)};
}

// A product with a table of halves, (f0 … fn f0 … fn), that gets one of neighbours, (f0 f0 f1 f1 …).
Results with_table_for_neighbours(OpCall& call) {
  const char* name = call.tensor("other").dim() <= call.tensor("self").dim() ? "other" : "self";
  const at::Tensor table = call.tensor(name);
  call.set(name, table.narrow(-1, 0, table.size(-1) / 2).repeat_interleave(2, -1));
  return call.run_again();
}

Results without_table(OpCall& call) {
  const bool first = call.tensor("self").dim() >= call.tensor("other").dim();
  return {call.tensor(first ? "self" : "other").clone()};
}

// x cos + cat(-x2, x1) sin as a whole. `halves`: the op that joins, `sines`, `cosines`: the products.
void whole_rotation(const ProgramIndex& program, int halves, int sines, int cosines, Hypotheses& to) {
  FaultHypothesis paired{"RoPE pairing", "neighbours paired", program.place(halves)};
  paired.deviation.rewrites[cosines] = with_table_for_neighbours;
  paired.deviation.rewrites[halves] = paired_with_neighbours;
  paired.deviation.rewrites[sines] = with_table_for_neighbours;
  to.push_back(paired);
  if (const int sum = program.ahead(sines, "add", 1); sum >= 0) {
    paired.what += ", and stored as halves";
    paired.deviation.rewrites[sum] = [](OpCall& call) {
      return Results{call.run_again()[0]->unflatten(-1, {-1, 2}).transpose(-1, -2).flatten(-2)};
    };
    to.push_back(std::move(paired));
  }
  FaultHypothesis missing{"RoPE missing", "not rotated", program.place(halves)};
  missing.deviation.rewrites[cosines] = without_table;
  missing.deviation.rewrites[sines] = [](OpCall& call) { return Results{at::zeros_like(*call.run_again()[0])}; };
  to.push_back(std::move(missing));
}

// Of value `x`, and of other casts of what it is a cast of: `q.float()` written twice makes two values.
std::vector<int> consumers_of_casts(const ProgramIndex& program, int64_t x) {
  std::vector<int> ops = program.consumers(x);
  const int made = program.producer(x);
  if (made < 0 || program.op(made).kind != "_to_copy") return ops;
  for (const int cast : program.consumers(program.argument(made, 0)))
    if (cast != made && program.op(cast).kind == "_to_copy" && program.op(cast).outputs[0])
      std::ranges::copy(program.consumers(program.op(cast).outputs[0]->id), std::back_inserter(ops));
  std::ranges::sort(ops);
  return ops;
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
  add_fault(to, program, index, "RoPE pairing", "neighbours paired, tables for halves", paired_with_neighbours);
  const auto& output = program.op(index).outputs[0];
  if (!output || program.consumers(output->id).empty()) return;
  const int sines = program.consumers(output->id).front();
  if (program.op(sines).kind != "mul") return;
  const int slice = program.producer(program.argument(negated, 0));
  const int64_t x = slice < 0 ? -1 : program.argument(slice, 0);
  for (const int cosines : consumers_of_casts(program, x))
    if (program.op(cosines).kind == "mul") return whole_rotation(program, index, sines, cosines, to);
}

bool takes_halves(const Op& op) { return op.kind == "slice" || op.kind == "split" || op.kind == "chunk"; }

// The same, found at the product with the cosines, which comes first: the halves stand beside it.
void rotate_half_of(const ProgramIndex& program, int product, Hypotheses& to) {
  const auto joined = [&](int64_t half) {
    for (const int neg : program.consumers(half)) {
      if (program.op(neg).kind != "neg") continue;
      for (const int cat : program.consumers(program.op(neg).outputs[0]->id))
        if (cat > product && program.op(cat).kind == "cat") rotate_half(program, cat, to);
    }
  };
  for (const int64_t x : program.reads(product))
    for (const int halves : consumers_of_casts(program, x))
      if (takes_halves(program.op(halves)))
        for (const auto& half : program.op(halves).outputs)
          if (half) joined(half->id);
}

// Halves or neighbours taken apart: y1 = x1 c - x2 s, y2 = x2 c + x1 s.
struct Rotation {
  int difference = -1, sum = -1;  // ops of y1 and y2
  int cosine = -1;                // x1 c
  int crossed = -1;               // x1 s
  int cosine2 = -1;               // x2 c
};

size_t position_of(const Op& op, int64_t id) {
  return static_cast<size_t>(std::ranges::find_if(op.outputs, [&](const auto& v) { return v && v->id == id; }) -
                             op.outputs.begin());
}

// Are both the same views, or casts, of one value? `table.real` written twice makes two values.
bool are_same(const ProgramIndex& program, int64_t a, int64_t b) {
  while (a != b) {
    const int from = program.producer(a), other = program.producer(b);
    if (from < 0 || other < 0) return false;
    const Op &left = program.op(from), &right = program.op(other);
    const auto literals = [](const Op& op) { return std::vector(op.args.begin() + !op.args.empty(), op.args.end()); };
    if (!(left.view || left.kind == "_to_copy") || left.name != right.name || literals(left) != literals(right) ||
        left.kwargs != right.kwargs || position_of(left, a) != position_of(right, b))
      return false;
    a = program.argument(from, 0), b = program.argument(other, 0);
  }
  return a >= 0;
}

// The product of `x` and `table` behind op `first`; -1: none.
int product_with(const ProgramIndex& program, int64_t x, int64_t table, int first) {
  for (const int op : program.consumers(x))
    if (const auto& reads = program.reads(op); op > first && program.op(op).kind == "mul" && reads.size() == 2 &&
                                               reads[0] == x && are_same(program, reads[1], table))
      return op;
  return -1;
}

// The rotation whose y1 is op `index`, a subtraction of two products.
std::optional<Rotation> rotation(const ProgramIndex& program, int index) {
  const int a = program.producer(program.argument(index, 0)), b = program.producer(program.argument(index, 1));
  if (a < 0 || b < 0 || program.op(a).kind != "mul" || program.op(b).kind != "mul") return std::nullopt;
  const auto &left = program.reads(a), &right = program.reads(b);
  if (left.size() != 2 || right.size() != 2) return std::nullopt;
  const int64_t x1 = left[0], c = left[1], x2 = right[0], s = right[1];
  Rotation r{index, -1, a, product_with(program, x1, s, a), product_with(program, x2, c, a)};
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
      FaultHypothesis h{fault, what, program.place(index)};
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

// The rotation of what op `index` takes apart.
std::optional<Rotation> rotation_of_parts(const ProgramIndex& program, int index) {
  for (const int product : program.consumers(program.op(index).outputs[0]->id))
    if (program.op(product).kind == "mul" && program.op(product).outputs[0])
      for (const int next : program.consumers(program.op(product).outputs[0]->id))
        if (program.op(next).kind == "sub")
          if (const auto found = rotation(program, next)) return found;
  return std::nullopt;
}

// The slice of every second channel that op `index`'s result is written to; -1: none.
int written_to(const ProgramIndex& program, int index) {
  for (const int copy : program.consumers(program.op(index).outputs[0]->id)) {
    if (program.op(copy).kind != "copy_") continue;
    const int slice = program.producer(program.argument(copy, 0));
    if (slice >= 0 && program.op(slice).kind == "slice" && program.number(slice, 4) == 2) return slice;
  }
  return -1;
}

// `paired`, its results written into halves of the buffer instead of into every second channel.
void stored_as_halves(const ProgramIndex& program, const Rotation& r, FaultHypothesis paired, Hypotheses& to) {
  const std::array slices{written_to(program, r.difference), written_to(program, r.sum)};
  if (slices[0] < 0 || slices[1] < 0) return;
  const int buffer = program.producer(program.argument(slices[0], 0));
  if (buffer < paired.deviation.rewrites.begin()->first || !program.op(buffer).outputs[0] ||
      program.argument(slices[1], 0) != program.argument(slices[0], 0))
    return;
  paired.what += ", and stored as halves";
  paired.deviation.rewrites[buffer] = [](OpCall& call) { return Results{at::zeros_like(*call.run_again()[0])}; };
  for (const int64_t half : {0, 1}) {
    paired.deviation.rewrites[slices[half]] = [half](OpCall& call) {
      const at::Tensor self = call.tensor("self");
      const int64_t axis = call.value("dim").toInt(), width = self.size(axis) / 2;
      return Results{self.narrow(axis, half * width, width)};
    };
    for (const int copy : program.consumers(program.op(slices[half]).outputs[0]->id))
      paired.deviation.rewrites[copy] = [](OpCall& call) { return call.run_again(); };
  }
  to.push_back(std::move(paired));
}

// Where the two parts come from: neighbours (…, n/2, 2) taken apart, or halves of the last axis.
void pairing(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.outputs.size() != 2 || !op.outputs[0] || !op.outputs[1] || op.outputs[0]->shape != op.outputs[1]->shape)
    return;
  const std::optional<Rotation> found = rotation_of_parts(program, index);
  if (!found) return;
  // Queries and keys alike may have their channels in any order: their product is the same.
  const bool neighbours = op.kind == "unbind";
  add_fault(to, program, index, "RoPE pairing",
            neighbours ? "halves paired for neighbours" : "neighbours paired for halves", [neighbours](OpCall& call) {
              const at::Tensor self = call.tensor("self");
              if (!neighbours) return Results{self.slice(-1, 0, self.size(-1), 2), self.slice(-1, 1, self.size(-1), 2)};
              const std::vector<at::Tensor> halves = self.flatten(-2).chunk(2, -1);
              return Results{halves.at(0), halves.at(1)};
            });
  if (neighbours) stored_as_halves(program, *found, to.back(), to);
}

}  // namespace

void rope_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const size_t before = to.size();
  if (op.name == "aten::mul.Tensor") {
    complex_product(program, index, to);
    rotated_parts(program, index, to);
    rotate_half_of(program, index, to);
  }
  if (op.kind == "unbind" || op.kind == "split" || op.kind == "chunk") pairing(program, index, to);
  for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // queries and keys
}

}  // namespace parity

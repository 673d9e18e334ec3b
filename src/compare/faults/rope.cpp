// Rotary embeddings: sign, pairing, positions, base, left out; complex products and rotate-half forms.
#include <fmt/format.h>

#include <cmath>

#include "compare/faults/catalogue.hpp"

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
    Hypothesis h{"RoPE pairing", "neighbours paired at " + program.path(index), Gate::logic, true, {}};
    h.deviation.rewrites[cosines] = respread;
    h.deviation.rewrites[index] = interleaved;
    h.deviation.rewrites[sines] = respread;
    if (std::min(cosines, index) == index)
      to.push_back(h);
    else
      to.push_back(h);  // begins at the product with the cosines
    Hypothesis missing{"RoPE missing", "not rotated at " + program.path(index), Gate::logic, true, {}};
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
    Hypothesis h{fault, fmt::format("{} at {}", what, op.path), Gate::logic, true, {}};
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
  if (op.name == "aten::mul.Tensor") complex_product(program, index, to);
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
}

}  // namespace parity

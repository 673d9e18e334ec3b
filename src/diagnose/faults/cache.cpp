// Values of an earlier call joined to this one's: key-value caches, frames that a causal convolution remembers.
#include <array>
#include <memory>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

// Was the value made in an earlier call of the module that reads it, or of a module above that? Views, copies and joins
// on the way do not count.
bool from_earlier_call(const ProgramIndex& program, int64_t id, int reader, int steps = 6) {
  const int made = program.producer(id);
  if (made < 0 || steps == 0) return false;
  const auto& calls = program.program().calls;
  const auto root = [&](int op) {
    int call = program.op(op).module_call;
    while (call >= 0 && calls[call].parent >= 0) call = calls[call].parent;
    return call;
  };
  if (root(made) != root(reader)) return true;
  for (int call = program.op(reader).module_call; call >= 0; call = calls[call].parent)
    for (int before = program.op(made).module_call; before >= 0; before = calls[before].parent)
      if (calls[before].path == calls[call].path && calls[before].call < calls[call].call) return true;
  const Op& op = program.op(made);
  if (!op.view && op.kind != "clone" && op.kind != "cat") return false;
  for (const int64_t before : program.reads(made))
    if (from_earlier_call(program, before, reader, steps - 1)) return true;
  return false;
}

using Change = at::Tensor (*)(const at::Tensor& old, const at::Tensor& now, int64_t axis);

struct CacheChange {
  const char* what;
  Change change;
  bool moves = false;  // all values are there, at other places
};
constexpr std::array kChanges{
    CacheChange{"new values before the old",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({n, o}, a);
                },
                true},
    CacheChange{"one place late",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({o.narrow(a, 1, o.size(a) - 1), n.narrow(a, 0, 1), n}, a);
                }},
    CacheChange{"rolled by one",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({o.roll({1}, {a}), n}, a);
                },
                true},
    CacheChange{"rolled back by one",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({o.roll({-1}, {a}), n}, a);
                },
                true},
    CacheChange{"forgotten (zeros)",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({at::zeros_like(o), n}, a);
                }},
    CacheChange{"the first new value repeated instead",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({n.narrow(a, 0, 1).expand_as(o), n}, a);
                }},
    CacheChange{"its last value repeated",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({o.narrow(a, o.size(a) - 1, 1).expand_as(o), n}, a);
                }},
    CacheChange{"the new value not stored (zeros)",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({o, at::zeros_like(n)}, a);
                }},
    CacheChange{"the new value stored one place early",
                [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({o.narrow(a, 0, o.size(a) - 1), n, at::zeros_like(n.narrow(a, 0, 1))}, a);
                }},
    CacheChange{"its last value alone, zeros before", [](const at::Tensor& o, const at::Tensor& n, int64_t a) {
                  return at::cat({at::zeros_like(o.narrow(a, 1, o.size(a) - 1)), o.narrow(a, o.size(a) - 1, 1), n}, a);
                }}};

// Is it one place that is joined to the others: a token's?
bool joins_one(const ProgramIndex& program, int index) {
  const Value* now = program.value(program.reads(index)[1]);
  const auto axis = static_cast<int64_t>(program.number(index, 1).value_or(0));
  const auto axes = static_cast<int64_t>(now == nullptr ? 0 : now->shape.size());
  return -axes <= axis && axis < axes && now->shape[static_cast<size_t>(axis < 0 ? axis + axes : axis)] == 1;
}

void joined_to_the_past(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const CacheChange& c : kChanges) {
    add_fault(to, program, index, "causal cache", c.what, [change = c.change](OpCall& call) {
      const std::vector<at::Tensor> parts = call.value("tensors").toTensorVector();
      if (parts.size() != 2 || parts[0].dim() != parts[1].dim()) throw std::runtime_error("not (old, new)");
      const c10::IValue axis = call.value("dim");
      return Results{change(parts[0], parts[1], axis.isNone() ? 0 : axis.toInt())};
    });
    // Keys and values of one query in another order, both alike, are the same sum, as engines with a fixed cache have
    // it.
    to.back().joint = !(c.moves && joins_one(program, index));
  }
}

// Zeros before the first frame alone: on both sides of it, or the first frame itself.
void padded(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto one_sided = [](const std::vector<int64_t>& pad) {
    for (size_t i = 0; i + 1 < pad.size(); i += 2)
      if (pad[i] > 0 && pad[i + 1] == 0) return static_cast<int64_t>(i);
    return int64_t{-1};
  };
  add_fault(to, program, index, "causal cache", "padded on both sides", [one_sided](OpCall& call) {
    std::vector<int64_t> pad = call.value("pad").toIntVector();
    const int64_t i = one_sided(pad);
    if (i < 0) throw std::runtime_error("not causal");
    pad[i + 1] = pad[i] / 2;
    pad[i] -= pad[i + 1];
    call.set("pad", pad);
    return call.run_again();
  });
  add_fault(to, program, index, "causal cache", "the first frame repeated for zeros", [one_sided](OpCall& call) {
    std::vector<int64_t> pad = call.value("pad").toIntVector();
    const int64_t i = one_sided(pad);
    const at::Tensor self = call.tensor("self");
    if (i < 0) throw std::runtime_error("not causal");
    const int64_t axis = self.dim() - 1 - i / 2;
    std::vector<int64_t> shape = self.sizes().vec();
    shape[axis] = pad[i];
    call.set("self", at::cat({self.narrow(axis, 0, 1).expand(shape), self}, axis));
    pad[i] = 0;
    call.set("pad", pad);
    return call.run_again();
  });
}

// A convolution that drops what came before and pads evenly.
void even_convolution(const ProgramIndex& program, int index, Hypotheses& to) {
  const int pad = program.behind(index, "constant_pad_nd", 1);
  if (pad < 0 || pad == index) return;
  const int cat = program.producer(program.argument(pad, 0));
  if (cat < 0 || program.op(cat).kind != "cat" || program.reads(cat).size() != 2) return;
  FaultHypothesis h{"causal cache", "padded on both sides, no cache", program.place(cat)};
  const auto old = std::make_shared<int64_t>(0);
  const auto axis = std::make_shared<int64_t>(0);
  h.deviation.rewrites[cat] = [old, axis](OpCall& call) {
    const std::vector<at::Tensor> parts = call.value("tensors").toTensorVector();
    *axis = call.value("dim").isNone() ? 0 : call.value("dim").toInt();
    *old = parts[0].size(*axis);
    return Results{parts[1].clone()};
  };
  h.deviation.rewrites[pad] = [old, axis](OpCall& call) {
    std::vector<int64_t> widths = call.value("pad").toIntVector();
    const size_t i = 2 * (call.tensor("self").dim() - 1 - *axis);
    if (i + 1 >= widths.size()) throw std::runtime_error("not padded there");
    const int64_t all = widths[i] + widths[i + 1] + *old;
    widths[i + 1] = all / 2;
    widths[i] = all - all / 2;
    call.set("pad", widths);
    return call.run_again();
  };
  to.push_back(std::move(h));
}

}  // namespace

void cache_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const auto& ids = program.reads(index);
  if (op.kind == "cat" && ids.size() == 2) {
    if (from_earlier_call(program, ids[0], index)) joined_to_the_past(program, index, to);
    for (const int reader : program.consumers(op.outputs[0] ? op.outputs[0]->id : -1))
      if (program.op(reader).kind == "constant_pad_nd") even_convolution(program, reader, to);
  }
  if (op.kind == "constant_pad_nd") padded(program, index, to);
}

}  // namespace parity

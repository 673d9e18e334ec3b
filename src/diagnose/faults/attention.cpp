// Attention: scale, masks, windows, sinks, heads; fused kernels and softmax between products.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "diagnose/faults/arithmetic_attention.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/faults/masks.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

// Above 0, and not so far off that its effect on a softmax would no longer be in proportion.
void is_a_scale(FaultHypothesis& slightly) {
  slightly.step = kTried;
  slightly.most = 1 / kTried;
  slightly.least = -slightly.most;
}

void fused_scale(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(
      to, program, index, "attention scale", "scale differs slightly",
      [](OpCall& call) {
        call.set("scale", attention_scale(call) * (1 + kTried));
        return call.run_again();
      },
      false);
  is_a_scale(to.back());
  struct Scale {
    const char* what;
    double (*of)(double width, double heads);
  };
  static constexpr std::array kScales{
      Scale{"no scale", [](double, double) -> double { return 1; }},
      Scale{"1 / width", [](double d, double) { return 1 / d; }},  // also: scaled twice
      Scale{"1 / sqrt(width)", [](double d, double) { return 1 / std::sqrt(d); }},
      Scale{"1 / sqrt(width of all heads)", [](double d, double heads) { return 1 / std::sqrt(d * heads); }},
      Scale{"1 / sqrt(half the width)", [](double d, double) { return 1 / std::sqrt(d / 2); }}};
  for (const Scale& s : kScales)
    add_fault(to, program, index, "attention scale", s.what, [of = s.of](OpCall& call) {
      const at::Tensor query = call.tensor("query");  // (batch, heads, tokens, width)
      call.set("scale", of(static_cast<double>(query.size(-1)), static_cast<double>(query.size(1))));
      return call.run_again();
    });
}

Rewrite with_causal_diagonal(int64_t diagonal) {
  return [diagonal](OpCall& call) {
    const int64_t rows = call.tensor("query").size(-2), columns = call.tensor("key").size(-2);
    const at::Tensor seen = at::ones({rows, columns}, call.tensor("query").options().dtype(at::kBool)).tril(diagonal);
    const at::Tensor mask = at::zeros({rows, columns}, call.tensor("query").options())
                                .masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity());
    call.set("is_causal", false);
    call.set(mask_name(call), mask);
    return call.run_again();
  };
}

// One more key is seen, or one less, after the last that is. `mask`: flags (true: seen) or numbers to be added.
at::Tensor mask_by_one(const at::Tensor& mask, bool more) {
  const bool flags = mask.scalar_type() == at::kBool;
  const at::Tensor seen = flags ? mask : mask.gt(kRecognition.hidden.value);
  const at::Tensor other = more ? seen.logical_or(seen.roll({1}, {-1})) : seen.logical_and(seen.roll({-1}, {-1}));
  if (flags) return other;
  return mask.masked_fill(other.logical_and(seen.logical_not()), 0)
      .masked_fill(seen.logical_and(other.logical_not()), mask.min());
}

void fused_masks(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "causal mask missing", "every key is seen", [](OpCall& call) {
    if (!call.value("is_causal").toBool() && !call.tensor(mask_name(call)).defined())
      throw std::runtime_error("no mask");
    if (hides_padding_alone(added_to_scores(call))) throw std::runtime_error("padding's mask");  // masks.cpp
    call.set("is_causal", false);
    call.set(mask_name(call), c10::IValue());
    return call.run_again();
  });
  for (const int64_t diagonal : {-1, 1})
    add_fault(to, program, index, "mask off by one", fmt::format("diagonal {:+d}", diagonal), [diagonal](OpCall& call) {
      if (!call.value("is_causal").toBool()) throw std::runtime_error("not causal");
      return with_causal_diagonal(diagonal)(call);
    });
  for (const int64_t by : {-1, 1})
    add_fault(to, program, index, "mask off by one", fmt::format("mask shifted by {:+d}", by), [by](OpCall& call) {
      const at::Tensor mask = call.tensor(mask_name(call));
      if (!mask.defined()) throw std::runtime_error("no mask");
      call.set(mask_name(call), mask.roll({by}, {-1}));
      return call.run_again();
    });
  for (const bool more : {true, false})
    add_fault(to, program, index, "mask off by one", more ? "one key more seen" : "one key less seen",
              [more](OpCall& call) {
                const at::Tensor mask = call.tensor(mask_name(call));
                if (!mask.defined()) throw std::runtime_error("no mask");
                call.set(mask_name(call), mask_by_one(mask, more));
                return call.run_again();
              });
  const Value *query = program.value(program.argument(index, 0)), *key = program.value(program.argument(index, 1));
  const bool cached = query != nullptr && key != nullptr && query->shape.size() > 1 && key->shape.size() > 1 &&
                      query->shape[query->shape.size() - 2] < key->shape[key->shape.size() - 2];
  // Fewer queries than keys: a triangle from the first key on is what `is_causal` means, not what a cache needs.
  add_fault(to, program, index, cached ? "mask off by one" : "causal mask",
            cached ? "triangle from the first key on" : "causal where it is not", [cached](OpCall& call) {
              if (call.value("is_causal").toBool()) throw std::runtime_error("causal already");
              if (!cached && is_causal(added_to_scores(call))) throw std::runtime_error("hides more");  // masks.cpp
              return with_causal_diagonal(0)(call);
            });
}

// Each key shares out the queries among itself, in place of each query the keys.
void fused_axis(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "wrong normalised axis", "softmax over the queries", [](OpCall& call) {
    const at::Tensor query = call.tensor("query"), key = call.tensor("key");
    if (query.dim() != 4 || query.size(1) % key.size(1) != 0) throw std::runtime_error("no heads");
    const at::Tensor keys = for_queries(key, query.size(1)), values = for_queries(call.tensor("value"), query.size(1));
    // hidden scores are finite: a key that no query sees is shared out evenly
    const at::Tensor scores = masked_scores(call, query.matmul(keys.mT()) * attention_scale(call))
                                  .clamp_min(std::numeric_limits<float>::lowest());  // (batch, heads, queries, keys)
    Results results = call.run_again();
    results[0] = scores.softmax(-2).matmul(values);
    return results;
  });
}

// What a query gets that sees no key is each kernel's own: nothing, or all values in equal parts.
void queries_without_keys(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const bool equal_parts : {true, false})
    add_fault(to, program, index, "queries that see no key", equal_parts ? "get the mean of all values" : "get zero",
              [equal_parts](OpCall& call) {
                const at::Tensor query = call.tensor("query"), key = call.tensor("key");
                if (query.dim() != 4 || query.size(1) % key.size(1) != 0) throw std::runtime_error("no heads");
                const at::Tensor nothing = at::zeros({query.size(0), query.size(1), query.size(2), key.size(2)});
                // (batch, heads, queries, 1)
                const at::Tensor empty =
                    masked_scores(call, nothing.to(query.device())).amax({-1}, true).le(kRecognition.hidden.value);
                if (!empty.any().item<bool>()) throw std::runtime_error("each query sees a key");
                Results results = call.run_again();
                const at::Tensor values = for_queries(call.tensor("value"), query.size(1));
                const at::Tensor theirs = equal_parts ? values.mean({-2}, true) : at::zeros({1}, values.options());
                results[0] = at::where(empty, theirs, *results[0]);
                return results;
              });
}

// Heads handed out in another order.
void fused_heads(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const int64_t groups : {2, 3, 4, 8})
    add_fault(to, program, index, "permuted heads",
              fmt::format("key and value heads tiled, not repeated, over {} groups", groups), [groups](OpCall& call) {
                for (const char* name : {"key", "value"}) {
                  const at::Tensor t = call.tensor(name);
                  if (t.size(1) % groups != 0 || t.size(1) == groups) throw std::runtime_error("no such groups");
                  call.set(name, t.unflatten(1, {t.size(1) / groups, groups}).transpose(1, 2).flatten(1, 2));
                }
                return call.run_again();
              });
  add_fault(to, program, index, "permuted heads", "fewer key and value heads tiled, not repeated", [](OpCall& call) {
    const int64_t heads = call.tensor("query").size(1), own = call.tensor("key").size(1);
    if (own < 2 || own >= heads) throw std::runtime_error("as many of each, or one for all");
    for (const char* name : {"key", "value"}) call.set(name, call.tensor(name).repeat({1, heads / own, 1, 1}));
    return call.run_again();
  });
  for (const char* name : {"query", "key", "value"})
    add_fault(to, program, index, "permuted heads", fmt::format("heads of {} in reverse", name), [name](OpCall& call) {
      call.set(name, call.tensor(name).flip({1}));
      return call.run_again();
    });
  add_fault(to, program, index, "weights swapped", "query and key exchanged", [](OpCall& call) {
    const at::Tensor query = call.tensor("query");
    call.set("query", call.tensor("key"));
    call.set("key", query);
    return call.run_again();
  });
  add_fault(to, program, index, "weights swapped", "key and value exchanged", [](OpCall& call) {
    const at::Tensor key = call.tensor("key");
    call.set("key", call.tensor("value"));
    call.set("value", key);
    return call.run_again();
  });
}

// softmax(scores): scale on the scores, masks that were added to them, a sink column.
void separate(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.ahead(index, "bmm", 6) < 0 && program.ahead(index, "slice", 2) < 0) return;
  add_fault(
      to, program, index, "attention scale", "scale differs slightly",
      [](OpCall& call) {
        const at::Tensor self = call.tensor("self");
        call.set("self", self * (1 + kTried));
        return call.run_again();
      },
      false);
  is_a_scale(to.back());
  if (const int slice = program.ahead(index, "slice", 1); slice >= 0)
    add_fault(to, program, index, "sink missing", "softmax without the last column", [](OpCall& call) {
      const at::Tensor self = call.tensor("self");
      call.set("self", self.narrow(-1, 0, self.size(-1) - 1));
      const at::Tensor weights = *call.run_again()[0];
      return Results{at::constant_pad_nd(weights, {0, 1}, 0)};
    });
  for (const int64_t diagonal : {-1, 1})
    add_fault(to, program, index, "mask off by one", fmt::format("diagonal {:+d}", diagonal), [diagonal](OpCall& call) {
      const at::Tensor self = call.tensor("self");
      const at::Tensor seen = at::ones({self.size(-2), self.size(-1)}, self.options().dtype(at::kBool)).tril(diagonal);
      if (diagonal > 0) throw std::runtime_error("what the mask hid is lost here");
      call.set("self", self.masked_fill(seen.logical_not(), -std::numeric_limits<double>::infinity()));
      return call.run_again();
    });
}

// scores + mask, where the mask comes from a leaf or a constant with -inf or the dtype's lowest number.
void added_mask(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.ahead(index, "_softmax", 4) < 0 || program.argument(index, 1) < 0) return;
  add_fault(to, program, index, "causal mask missing", "mask not added", [](OpCall& call) {
    if (call.tensor("other").dim() > 1 && hides_padding_alone(call.tensor("other")))
      throw std::runtime_error("padding's mask");
    return Results{call.tensor("self").clone()};
  });
  for (const int64_t by : {-1, 1})
    add_fault(to, program, index, "mask off by one", fmt::format("mask shifted by {:+d}", by), [by](OpCall& call) {
      const at::Tensor mask = call.tensor("other");
      if (mask.dim() < 2) throw std::runtime_error("no mask");
      call.set("other", mask.roll({by}, {-1}));
      return call.run_again();
    });
  const Value* bias = program.value(program.argument(index, 1));
  if (bias != nullptr && bias->shape.size() > 3 && bias->shape[1] > 1)
    add_fault(to, program, index, "permuted heads", "the bias of the heads in reverse", [](OpCall& call) {
      call.set("other", call.tensor("other").flip({1}));
      return call.run_again();
    });
}

// A mask on its own: numbers near -inf beside zeros. One column further or less is seen.
// where(seen, scores or bias, -inf), where(hidden, -inf, scores), masked_fill(scores, hidden, -inf).
void chosen_mask(const ProgramIndex& program, int index, Hypotheses& to) {
  const char* flags = program.op(index).kind == "where" ? "condition" : "mask";
  for (const bool more : {true, false})
    for (const bool hidden : {true, false})
      add_fault(to, program, index, "mask off by one",
                fmt::format("one key {} seen, by the {} ones", more ? "more" : "less", hidden ? "hidden" : "seen"),
                [flags, more, hidden](OpCall& call) {
                  const at::Tensor given = call.tensor(flags);
                  if (given.scalar_type() != at::kBool || given.dim() < 2) throw std::runtime_error("no flags");
                  if (call.run_again()[0]->min().item<double>() > kRecognition.hidden)
                    throw std::runtime_error("no mask");
                  call.set(flags,
                           hidden ? mask_by_one(given.logical_not(), more).logical_not() : mask_by_one(given, more));
                  return call.run_again();
                });
}

void shifted_mask(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto& output = program.op(index).outputs[0];
  if (!output || output->shape.size() < 2 || output->shape.back() < 2 || !at::isFloatingType(output->dtype)) return;
  if (program.op(index).kind == "add" && program.ahead(index, "_softmax", 3) >= 0) return;  // scores
  if (program.op(index).kind == "add" && program.ahead(index, "add", 2) < 0) return;
  for (const int64_t by : {-1, 1})
    add_fault(to, program, index, "mask off by one", fmt::format("mask shifted by {:+d}", by), [by](OpCall& call) {
      Results results = call.run_again();
      if (results[0]->min().item<double>() > kRecognition.hidden) throw std::runtime_error("no mask");
      results[0] = results[0]->roll({by}, {-1});
      return results;
    });
  add_fault(to, program, index, "causal mask missing", "nothing is masked", [](OpCall& call) {
    Results results = call.run_again();
    if (results[0]->min().item<double>() > kRecognition.hidden) throw std::runtime_error("no mask");
    if (hides_padding_alone(*results[0])) throw std::runtime_error("padding's mask");
    results[0] = results[0]->masked_fill(results[0]->lt(kRecognition.hidden.value), 0);
    return results;
  });
}

}  // namespace

void attention_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (is_fused_attention(op)) {
    const size_t before = to.size();
    fused_scale(program, index, to);
    fused_masks(program, index, to);
    fused_axis(program, index, to);
    queries_without_keys(program, index, to);
    fused_heads(program, index, to);
    for (size_t i = before; i < to.size(); ++i) to[i].joint = true;  // a module may call it for each sample
  }
  if (op.kind == "_softmax") separate(program, index, to);
  if (op.name == "aten::add.Tensor") added_mask(program, index, to);
  if (op.name == "aten::add.Tensor" || op.kind == "where" || op.kind == "masked_fill") shifted_mask(program, index, to);
  if (op.kind == "where" || op.kind == "masked_fill") chosen_mask(program, index, to);
  if (op.kind == "mul" && program.number(index, 1) && program.ahead(index, "_softmax", 4) >= 0)
    add_fault(to, program, index, "attention scale", "scores not scaled",
              [](OpCall& call) { return Results{call.tensor("self").clone()}; });
}

}  // namespace parity

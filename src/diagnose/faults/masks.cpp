// Which keys a query sees: sliding windows, padding, triangles without their diagonal.
#include <fmt/format.h>

#include <limits>
#include <set>

#include "diagnose/faults/arithmetic_attention.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/faults/masks.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

constexpr double kUnseen = -std::numeric_limits<double>::infinity();

// Steps back from each query to each key, (queries, keys); the last query and the last key are of one place.
at::Tensor steps_back(const at::Tensor& scores) {
  const int64_t queries = scores.size(-2), keys = scores.size(-1);
  const at::TensorOptions whole = scores.options().dtype(at::kLong);
  return (at::arange(queries, whole) + (keys - queries)).unsqueeze(1) - at::arange(keys, whole);
}

at::Tensor is_seen(const at::Tensor& scores) { return scores.gt(kRecognition.hidden.value); }

void set_mask(OpCall& call, const c10::IValue& mask) {
  call.set("is_causal", false);
  call.set(mask_name(call), mask);
}

// Scores of which fewer are seen. Throws where nothing changes, or where queries see what comes after them.
using Narrowing = std::function<at::Tensor(const at::Tensor& scores)>;

at::Tensor within(const at::Tensor& scores, int64_t keys) {
  const at::Tensor back = steps_back(scores), seen = is_seen(scores), closed = seen.logical_and(back.ge(keys));
  if (!is_causal(scores)) throw std::runtime_error("not causal");
  if (!closed.any().item<bool>()) throw std::runtime_error("seen no further");
  return scores.masked_fill(closed, kUnseen);
}

// Without the diagonal, but for queries that would see nothing.
at::Tensor strictly_before(const at::Tensor& scores) {
  const at::Tensor back = steps_back(scores), seen = is_seen(scores), own = seen.logical_and(back.eq(0));
  if (!is_causal(scores)) throw std::runtime_error("not causal");
  const at::Tensor others = seen.logical_and(back.gt(0)).any(-1, true);
  return scores.masked_fill(own.logical_and(others), kUnseen);
}

std::set<int64_t> windows(int64_t keys) {
  std::set<int64_t> found;
  for (int64_t w = 1; w < keys && keys <= kWindowsEach; ++w) found.insert(w);
  for (int64_t w = 2; w < keys; w *= 2)
    for (const int64_t near : {w - 1, w, w + 1})
      if (near < keys) found.insert(near);
  for (const int64_t part : {keys / 4, keys / 2, keys - keys / 4}) found.insert(part);
  return found;
}

void add_narrower(const ProgramIndex& program, int index, const char* fault, const std::string& what,
                  const Narrowing& narrower, Hypotheses& to) {
  const bool fused = is_fused_attention(program.op(index));
  add_fault(to, program, index, fault, what, [narrower, fused](OpCall& call) {
    if (fused)
      set_mask(call, narrower(added_to_scores(call)));
    else
      call.set("self", narrower(call.tensor("self")));
    return call.run_again();
  });
  to.back().gross = true;
  to.back().rank = 1;  // a window that is there, and one off, says more
}

void narrower_masks(const ProgramIndex& program, int index, int64_t queries, int64_t keys, Hypotheses& to) {
  if (queries < 2) return;
  for (const int64_t w : windows(keys))
    add_narrower(
        program, index, "sliding window",
        w == 1 ? "each query sees itself alone" : fmt::format("the last {} keys alone are seen", w),
        [w](const at::Tensor& scores) { return within(scores, w); }, to);
  add_narrower(program, index, "mask off by one", "diagonal -1, the first query sees itself", strictly_before, to);
}

enum class Hidden { nothing, padding, others };

// Which keys are hidden from the queries for which `all` are there: the same ones from each of them?
Hidden hidden_of(const at::Tensor& seen, const at::Tensor& all) {
  const at::Tensor hidden = all.logical_and(seen.logical_not());
  if (!hidden.any().item<bool>()) return Hidden::nothing;
  const at::Tensor whole = all.logical_and(hidden.any(-2, true));
  return at::equal(whole.expand_as(hidden), hidden) ? Hidden::padding : Hidden::others;
}

// Of a mask within the triangle, the triangle alone.
void triangle_alone(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const Hidden dropped : {Hidden::padding, Hidden::others})
    add_fault(to, program, index, dropped == Hidden::padding ? "padding mask missing" : "sliding window",
              dropped == Hidden::padding ? "causal alone: padding is attended" : "left out: all keys before are seen",
              [dropped](OpCall& call) {
                const at::Tensor added = added_to_scores(call), seen = is_seen(added),
                                 before = steps_back(added).ge(0).expand_as(seen);
                if (!is_causal(added)) throw std::runtime_error("not causal");
                if (hidden_of(seen, before) != dropped) throw std::runtime_error("hides others");
                set_mask(call, at::zeros_like(added).masked_fill(before.logical_not(), kUnseen));
                return call.run_again();
              });
}

void no_padding_mask(const ProgramIndex& program, int index, Hypotheses& to) {
  constexpr const char *kFault = "padding mask missing", *kWhat = "padding is attended";
  const Op& op = program.op(index);
  if (is_fused_attention(op)) {
    add_fault(to, program, index, kFault, kWhat, [](OpCall& call) {
      if (!hides_padding_alone(added_to_scores(call))) throw std::runtime_error("hides others");
      set_mask(call, c10::IValue());
      return call.run_again();
    });
  } else if (op.name == "aten::add.Tensor" && program.ahead(index, "_softmax", 4) >= 0 &&
             program.argument(index, 1) >= 0) {
    add_fault(to, program, index, kFault, kWhat, [](OpCall& call) {
      const at::Tensor mask = call.tensor("other");
      if (mask.dim() < 2 || !hides_padding_alone(mask)) throw std::runtime_error("hides others");
      return Results{call.tensor("self").clone()};
    });
  } else if (op.kind == "where" || op.kind == "masked_fill") {
    add_fault(to, program, index, kFault, kWhat, [](OpCall& call) {
      Results results = call.run_again();
      if (results[0]->dim() < 2 || !hides_padding_alone(*results[0])) throw std::runtime_error("hides others");
      results[0] = results[0]->masked_fill(results[0]->lt(kRecognition.hidden.value), 0);
      return results;
    });
  }
}

// On a cache, without a mask: its first key or the newest is left out.
void unseen_keys(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const bool newest : {true, false})
    add_fault(to, program, index, "mask off by one", newest ? "the newest key not seen" : "the oldest key not seen",
              [newest](OpCall& call) {
                if (call.tensor(mask_name(call)).defined() || call.tensor("key").size(-2) < 2)
                  throw std::runtime_error("a mask says which");
                for (const char* name : {"key", "value"}) {
                  const at::Tensor all = call.tensor(name);
                  call.set(name, all.narrow(-2, newest ? 0 : 1, all.size(-2) - 1));
                }
                return call.run_again();
              });
}

}  // namespace

at::Tensor added_to_scores(const OpCall& call) {
  const at::Tensor query = call.tensor("query"), key = call.tensor("key");
  if (query.dim() != 4) throw std::runtime_error("no heads");
  return masked_scores(call, at::zeros({query.size(0), query.size(1), query.size(2), key.size(2)}, query.options()));
}

bool hides_padding_alone(const at::Tensor& scores) {
  const at::Tensor seen = is_seen(scores);
  return hidden_of(seen, at::ones_like(seen)) == Hidden::padding;
}

bool is_causal(const at::Tensor& scores) {
  return !is_seen(scores).logical_and(steps_back(scores).lt(0)).any().item<bool>();
}

const char* mask_name(const OpCall& call) {
  return call.tensor("attn_mask").defined() || call.schema.name().find("flash") != std::string::npos ? "attn_mask"
                                                                                                     : "attn_bias";
}

void mask_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  no_padding_mask(program, index, to);
  if (is_fused_attention(op)) {
    const Value *query = program.value(program.argument(index, 0)), *key = program.value(program.argument(index, 1));
    if (query == nullptr || key == nullptr || query->shape.size() != 4 || key->shape.size() != 4) return;
    triangle_alone(program, index, to);
    if (query->shape[2] < key->shape[2]) unseen_keys(program, index, to);
    narrower_masks(program, index, query->shape[2], key->shape[2], to);
  }
  if (op.kind != "_softmax" || (program.ahead(index, "bmm", 6) < 0 && program.ahead(index, "matmul", 6) < 0)) return;
  const Value* scores = program.value(program.argument(index, 0));
  if (scores != nullptr && scores->shape.size() > 2)
    narrower_masks(program, index, scores->shape[scores->shape.size() - 2], scores->shape.back(), to);
}

}  // namespace parity

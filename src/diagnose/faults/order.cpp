// The right numbers in the wrong places: channels, patches, heads put together.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "diagnose/faults/catalogue.hpp"
#include "measure/reordered.hpp"

namespace parity {
namespace {

std::vector<int64_t> shape_of(const ProgramIndex& program, int64_t id) {
  const Value* value = program.value(id);
  return value == nullptr ? std::vector<int64_t>{} : value->shape;
}

bool behind_attention(const ProgramIndex& program, int index) {
  for (const char* kind : {"_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_flash_attention",
                           "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "bmm"})
    if (program.behind(index, kind, 5) >= 0) return true;
  return false;
}

void add_joint(Hypotheses& to, const ProgramIndex& program, int index, const char* fault, const std::string& what,
               Rewrite rewrite) {
  add_fault(to, program, index, fault, what, std::move(rewrite));
  to.back().joint = true;
}

// (…, heads, width) put into one axis.
void merged_heads(const ProgramIndex& program, int index, const std::vector<int64_t>& in, Hypotheses& to) {
  const auto reshaped = [](OpCall& call, const at::Tensor& t) { return Results{t.reshape(call.op.outputs[0]->shape)}; };
  add_fault(to, program, index, "permuted heads", "heads within width",
            [reshaped](OpCall& call) { return reshaped(call, call.tensor("self").transpose(-1, -2)); });
  add_fault(to, program, index, "permuted heads", "tokens and heads not transposed before they are joined",
            [reshaped](OpCall& call) { return reshaped(call, call.tensor("self").transpose(-2, -3)); });
  add_fault(to, program, index, "permuted heads", "heads in reverse",
            [reshaped](OpCall& call) { return reshaped(call, call.tensor("self").flip({-2})); });
  const int64_t heads = in[in.size() - 2];
  for (int64_t groups = 2; groups < heads && groups <= 16; ++groups)
    if (heads % groups == 0)
      add_fault(to, program, index, "permuted heads", fmt::format("heads group by group, {} groups", groups),
                [reshaped, groups](OpCall& call) {
                  const at::Tensor self = call.tensor("self");
                  return reshaped(call, self.unflatten(-2, {groups, self.size(-2) / groups}).transpose(-2, -3));
                });
}

// Fewer key and value heads, (batch, groups, repeats, …) put into one axis of heads: each group after the other,
// instead of each repeated.
void repeated_heads(const ProgramIndex& program, int index, const std::vector<int64_t>& in, Hypotheses& to) {
  if (in[1] < 2 || in[2] < 2 || program.behind(index, "expand", 2) < 0) return;
  add_joint(to, program, index, "permuted heads", "key and value heads tiled, not repeated", [](OpCall& call) {
    return Results{call.tensor("self").transpose(1, 2).reshape(call.op.outputs[0]->shape)};
  });
}

bool ends_dataflow(const std::string& kind) {
  return kind == "mm" || kind == "addmm" || kind == "convolution" || kind == "embedding" || kind == "_softmax";
}

// Values that op `index` makes or writes, views of them taken back to what they are views of.
std::vector<int64_t> made_by(const ProgramIndex& program, int index) {
  std::vector<int64_t> ids;
  const Op& op = program.op(index);
  for (const auto& output : op.outputs)
    if (output) ids.push_back(output->id);
  if (!op.kind.ends_with('_')) return ids;
  for (int64_t id = program.argument(index, 0); id >= 0;) {
    ids.push_back(id);
    const int made = program.producer(id);
    id = made >= 0 && made < index && program.op(made).view ? program.argument(made, 0) : -1;
  }
  return ids;
}

// Does attention at op `index` take tensors of that many heads of that width? Key heads may be fewer than the query's.
bool attends_with(const ProgramIndex& program, int index, int64_t heads, int64_t width) {
  const bool fused = program.op(index).kind.find("attention") != std::string::npos;
  for (const int64_t id : program.reads(index)) {
    const std::vector<int64_t> shape = shape_of(program, id);
    if (fused && shape.size() == 4 && shape[3] == width && (shape[1] == heads || shape[2] == heads)) return true;
    if (!fused && shape.size() == 3 && shape[0] % heads == 0 && (shape[1] == width || shape[2] == width)) return true;
  }
  return false;
}

// Do the results of op `index` reach attention as heads of that width, through whatever lies before its products
// (norms, rotations, caches, repeated key heads)?
bool become_heads(const ProgramIndex& program, int index, int64_t heads, int64_t width) {
  constexpr size_t kMost = 64;  // ops looked at
  std::vector<int> ops{index};
  std::set<int> seen{index};
  for (size_t i = 0; i < ops.size() && i < kMost; ++i)
    for (const int64_t id : made_by(program, ops[i]))
      for (const int next : program.consumers(id)) {
        if (next <= ops[i] || !seen.insert(next).second) continue;
        const std::string& kind = program.op(next).kind;
        if (kind == "bmm" || kind.find("attention") != std::string::npos) {
          if (attends_with(program, next, heads, width)) return true;
        } else if (!ends_dataflow(kind)) {
          ops.push_back(next);
        }
      }
  return false;
}

// The axes of `out` that one axis of `in` was taken apart into, for each that was; none where axes were joined.
std::vector<std::vector<int64_t>> taken_apart(const std::vector<int64_t>& in, const std::vector<int64_t>& out) {
  std::vector<std::vector<int64_t>> groups;
  size_t j = 0;
  for (const int64_t whole : in) {
    std::vector<int64_t> parts;
    int64_t product = 1;
    while (product < whole && j < out.size()) {
      product *= out[j];
      if (out[j] != 1) parts.push_back(static_cast<int64_t>(j));
      ++j;
    }
    if (product != whole) return {};
    if (parts.size() > 1) groups.push_back(std::move(parts));
  }
  return groups;
}

// Heads group by group where each key head serves its neighbours, or the other way.
void grouped_heads(const ProgramIndex& program, int index, const std::vector<int64_t>& out, int64_t axis,
                   Hypotheses& to) {
  for (int64_t groups = 2; groups < out[axis] && groups <= 16; ++groups)
    if (out[axis] % groups == 0)
      add_joint(to, program, index, "permuted heads", fmt::format("heads group by group, {} groups", groups),
                [axis, groups](OpCall& call) {
                  const at::Tensor heads = *call.run_again()[0];
                  return Results{heads.unflatten(axis, {groups, heads.size(axis) / groups})
                                     .transpose(axis, axis + 1)
                                     .flatten(axis, axis + 1)
                                     .contiguous()};
                });
}

// Pairs of channels that are rotated as complex numbers; those taken apart again are rope.cpp's.
bool are_complex(const ProgramIndex& program, int index, const std::vector<int64_t>& out,
                 const std::vector<int64_t>& parts) {
  return parts.size() == 2 && out[parts[1]] == 2 && parts[1] + 1 == static_cast<int64_t>(out.size()) &&
         program.ahead(index, "view_as_complex", 2) >= 0;
}

// One axis taken apart: its parts in another order.
void parted(const ProgramIndex& program, int index, const std::vector<int64_t>& out, const std::vector<int64_t>& parts,
            Hypotheses& to) {
  if (parts.size() > 3) return;
  const bool pairs = are_complex(program, index, out, parts);
  bool heads = false;  // (heads, width), or one of them with query, key and value beside it
  for (size_t i = 0; i + 1 < parts.size(); ++i)
    heads = heads || become_heads(program, index, out[parts[i]], out[parts.back()]);
  std::vector<int64_t> order = parts;
  while (std::next_permutation(order.begin(), order.end())) {
    add_joint(to, program, index,
              pairs   ? "RoPE pairing"
              : heads ? "permuted heads"
                      : "channel order",
              pairs ? "halves taken apart for neighbours"  // not as rope.cpp has it: one name's places change together
                    : fmt::format("axis taken apart in another order ({})", fmt::join(order, ", ")),
              [parts, order](OpCall& call) {
                std::vector<int64_t> shape = call.op.outputs[0]->shape, back(shape.size());
                for (size_t i = 0; i < shape.size(); ++i) back[i] = static_cast<int64_t>(i);
                const std::vector<int64_t> right = shape;
                for (size_t i = 0; i < parts.size(); ++i) {
                  shape[parts[i]] = right[order[i]];
                  back[order[i]] = parts[i];
                }
                // dense: a fused kernel reads its last axis element by element
                return Results{call.tensor("self").reshape(shape).permute(back).contiguous()};
              });
    if (!heads && !pairs) to.back().rank = 1;  // a rotation that pairs otherwise says more
  }
  if (heads && parts.size() == 2) grouped_heads(program, index, out, parts[0], to);
}

void moved(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.outputs.empty() || !op.outputs[0]) return;
  const std::vector<int64_t> in = shape_of(program, program.argument(index, 0)), &out = op.outputs[0]->shape;
  if (in.size() >= 3 && out.size() + 1 == in.size() && out.back() == in.back() * in[in.size() - 2] &&
      behind_attention(program, index))
    merged_heads(program, index, in, to);
  if (in.size() == 5 && out.size() == 4 && out[1] == in[1] * in[2] && out[2] == in[3] && out[3] == in[4])
    repeated_heads(program, index, in, to);
  if (out.size() <= in.size()) return;
  for (const std::vector<int64_t>& parts : taken_apart(in, out)) parted(program, index, out, parts, to);
}

// A part of a tensor that a value is written to.
bool is_destination(const ProgramIndex& program, int slice) {
  const auto& part = program.op(slice).outputs[0];
  return part && std::ranges::any_of(program.consumers(part->id), [&](int op) {
           return program.op(op).kind == "copy_" && program.argument(op, 0) == part->id;
         });
}

// Every second element that is read: the first and the second half instead. Queries and keys may both be written so,
// their product is the same.
void interleaved(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.number(index, 4) != 2 || is_destination(program, index)) return;
  add_joint(to, program, index, "channel order", "halves for every second channel", [](OpCall& call) {
    const at::Tensor self = call.tensor("self");
    const int64_t axis = call.value("dim").toInt(), half = self.size(axis) / 2;
    const c10::IValue start = call.value("start");
    return Results{self.narrow(axis, start.isInt() && start.toInt() % 2 == 1 ? half : 0, half)};
  });
}

void channels(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (!op.outputs[0] || op.outputs[0]->shape.size() < 3) return;
  const int64_t n = op.outputs[0]->shape[1];
  // What an upsampling convolution makes is taken apart: (parts, channels) for (channels, parts).
  for (const int64_t parts : {2, 4})
    for (const int64_t outer : {parts, n / parts})
      if (n % parts == 0 && n / parts > 1 && (outer == parts || n != parts * parts))
        add_fault(to, program, index, "channel order",
                  fmt::format("channels as ({}, {}) on one side", outer, n / outer), [outer](OpCall& call) {
                    return Results{call.run_again()[0]->unflatten(1, {outer, -1}).transpose(1, 2).flatten(1, 2)};
                  });
  const std::vector<int64_t> in = shape_of(program, program.argument(index, 0));
  if (in.size() > 2 && in[1] > 1)
    add_fault(to, program, index, "channel order",
              fmt::format("{} of the input in reverse", in[1] <= 4 ? "colours" : "channels"), [](OpCall& call) {
                call.set("input", call.tensor("input").flip({1}));
                return call.run_again();
              });
  if (n != 3 && n != 4) return;
  add_fault(to, program, index, "channel order", "colours in reverse",
            [](OpCall& call) { return Results{call.run_again()[0]->flip({1})}; });
}

bool are_heads(const ProgramIndex& program, int index, const std::vector<int64_t>& shape, const Reordered& order) {
  const Op& op = program.op(index);
  const int64_t rank = std::ssize(shape), n = shape[order.axis], width = order.width;
  if (op.kind.find("attention") != std::string::npos) return rank == 4 && order.axis == 1;
  if (order.axis + 1 < rank) return rank == 4 && become_heads(program, index, n, shape.back());
  return width > 1 && (become_heads(program, index, n / width, width) || (op.view && behind_attention(program, index)));
}

// One product for query, key and value, for key and value, or for a gate and what it opens.
bool are_stacked(const ProgramIndex& program, int index, int64_t features, int64_t width) {
  const std::string& kind = program.op(index).kind;
  const bool product = kind == "convolution" || kind == "addmm" || kind == "mm" || kind == "linear";
  return product && (features == 2 * width || features == 3 * width);
}

}  // namespace

std::string order_fault(const ProgramIndex& program, int index, const std::vector<int64_t>& shape,
                        const Reordered& order) {
  const int64_t rank = std::ssize(shape);
  const bool tokens = rank == 3 && order.axis == 1 && (index < 0 || program.op(index).kind != "convolution"),
             channels = order.axis + 1 == rank || (order.axis == 1 && rank > 2);
  if (index >= 0 && are_heads(program, index, shape, order)) return "permuted heads";
  if (index >= 0 && channels && are_stacked(program, index, shape[order.axis], order.width)) return "weights swapped";
  return tokens ? "token order" : channels ? "channel order" : "element order";
}

void order_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind == "view" || op.kind == "_unsafe_view" || op.kind == "reshape") moved(program, index, to);
  if (op.kind == "slice") interleaved(program, index, to);
  if (op.kind == "convolution") channels(program, index, to);
}

}  // namespace parity

// Gated products, act(gate) * up, as MLPs (SwiGLU, GeGLU) and experts have them: gate and up exchanged.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/chains.hpp"

namespace parity {
namespace {

constexpr const char* kExchanged = "gate and up exchanged";
constexpr size_t kLongestActivation = 16;  // ops: GELU written out has eight

// What a value is made from, element by element.
struct Origins {
  std::set<int64_t> ids;
  bool activated = false;  // through an activation
};

Origins origins_of(const ProgramIndex& program, int64_t value) {
  Origins found;
  std::vector<int64_t> todo{value};
  std::set<int64_t> seen(todo.begin(), todo.end());
  for (size_t next = 0; next < todo.size() && next < kLongestActivation; ++next) {
    const int64_t id = todo[next];
    const int made = program.producer(id);
    if (made < 0 || !is_elementwise(program.op(made))) {
      const Leaf* leaf = program.leaf(id);
      if (leaf == nullptr || !leaf->is_weight()) found.ids.insert(id);
      continue;
    }
    found.activated = found.activated || is_activation_op(program.op(made));
    for (const int64_t before : program.reads(made))
      if (seen.insert(before).second) todo.push_back(before);
  }
  return found;
}

// Of the product of op `index` the origins (gate, up); both -1 where it is no gated product.
std::pair<int64_t, int64_t> gate_and_up(const ProgramIndex& program, int index) {
  constexpr std::pair<int64_t, int64_t> kNone{-1, -1};
  const int64_t left = program.argument(index, 0), right = program.argument(index, 1);
  if (left < 0 || right < 0) return kNone;
  const Origins one = origins_of(program, left), other = origins_of(program, right);
  if (one.ids.size() != 1 || other.ids.size() != 1 || one.ids == other.ids || one.activated == other.activated)
    return kNone;
  const std::pair<int64_t, int64_t> both{*one.ids.begin(), *other.ids.begin()};
  return one.activated ? both : std::pair(both.second, both.first);
}

struct Layer {
  int op = -1;
  const Leaf *weight = nullptr, *bias = nullptr;  // bias: nullptr for none
  bool transposed = false;
};

const char* weight_argument(const Op& op) { return op.kind == "convolution" ? "weight" : "mat2"; }
const char* bias_argument(const Op& op) { return op.kind == "convolution" ? "bias" : "self"; }

std::optional<Layer> layer_at(const ProgramIndex& program, int index) {
  const std::string& kind = program.op(index).kind;
  const bool conv = kind == "convolution", adds = kind == "addmm";
  if (!conv && !adds && kind != "mm") return std::nullopt;
  const int64_t id = program.argument(index, adds ? 2 : 1),
                bias = conv || adds ? program.argument(index, conv ? 2 : 0) : -1;
  const Leaf* weight = program.leaf_behind(id, conv ? 0 : 1);
  if (weight == nullptr || (bias >= 0 && program.leaf(bias) == nullptr)) return std::nullopt;
  return Layer{index, weight, bias < 0 ? nullptr : program.leaf(bias), weight->value.id != id};
}

Rewrite with_layer(const Layer& other) {
  return [weight = other.weight->value.id, bias = other.bias == nullptr ? -1 : other.bias->value.id,
          transposed = other.transposed](OpCall& call) {
    const at::Tensor w = call.leaf(weight);
    call.set(weight_argument(call.op), transposed ? w.t() : w);
    if (bias >= 0) call.set(bias_argument(call.op), call.leaf(bias));
    return call.run_again();
  };
}

using Activation = std::function<at::Tensor(const at::Tensor&)>;

Activation activation_of(const Op& op) {
  const std::string_view kind = out_of_place(op);
  const std::string form = op.kwargs.value("approximate", std::string("none"));
  if (kind == "silu") return [](const at::Tensor& x) { return at::silu(x); };
  if (kind == "gelu") return [form](const at::Tensor& x) { return at::gelu(x, form); };
  if (kind == "relu") return [](const at::Tensor& x) { return at::relu(x); };
  if (kind == "sigmoid") return [](const at::Tensor& x) { return at::sigmoid(x); };
  if (kind == "tanh") return [](const at::Tensor& x) { return at::tanh(x); };
  return nullptr;
}

std::string stored_name(const Leaf& leaf) {
  constexpr std::string_view kWeights = "weights/";
  for (const std::string& name : leaf.names)
    if (name.starts_with(kWeights)) return name.substr(kWeights.size());
  return "a weight";
}

// Where gate and up are right and the other one goes through the activation, op `index`.
void other_one_activated(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const Activation function = activation_of(op);
  if (function == nullptr || op.outputs.empty() || !op.outputs[0]) return;
  for (const int product : program.consumers(op.outputs[0]->id)) {
    if (product <= index || program.op(product).kind != "mul") continue;
    const auto [gate, up] = gate_and_up(program, product);
    if (gate < 0 || up < 0) continue;
    const bool first = program.argument(product, 0) == op.outputs[0]->id;
    FaultHypothesis h{kExchanged, "the other one activated", program.place(index)};
    const auto kept = std::make_shared<at::Tensor>();
    h.deviation.rewrites[index] = [kept](OpCall& call) {
      *kept = call.tensor("self").clone();
      return call.run_again();
    };
    h.deviation.rewrites[product] = [kept, function, other = first ? "other" : "self"](OpCall& call) {
      return Results{function(call.tensor(other)) * *kept};
    };
    h.gross = true;
    h.rank = 1;  // two layers exchanged say more
    to.push_back(std::move(h));
  }
}

// The weights of two layers, gate's, which comes first, and up's.
void layers_exchanged(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::optional<Layer> own = layer_at(program, index);
  const Op& op = program.op(index);
  if (!own || op.outputs.empty() || !op.outputs[0]) return;
  const int partner = program.producer(gated_with(program, op.outputs[0]->id));
  if (partner <= index || program.op(partner).kind != op.kind) return;
  const std::optional<Layer> other = layer_at(program, partner);
  if (!other || other->weight->value.shape != own->weight->value.shape || !own->bias != !other->bias) return;
  FaultHypothesis h{kExchanged, stored_name(*own->weight) + " and " + stored_name(*other->weight),
                    program.place(index)};
  h.deviation.rewrites = {{index, with_layer(*other)}, {partner, with_layer(*own)}};
  h.gross = true;
  to.push_back(std::move(h));
}

// Gate and up are the halves of one product: every second channel in their place (order.cpp has the contrary).
void halves_interleaved(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  const Value* whole = program.value(program.argument(index, 0));
  if ((op.kind != "split" && op.kind != "slice") || op.outputs.empty() || !op.outputs[0] || whole == nullptr) return;
  if (op.outputs[0]->elements() * 2 != whole->elements() || gated_with(program, op.outputs[0]->id) < 0) return;
  add_fault(to, program, index, "channel order", "every second channel for halves", [](OpCall& call) {
    const at::Tensor self = call.tensor("self");
    const int64_t axis = call.value("dim").toInt(), half = self.size(axis) / 2;
    const auto every_second = [&](int64_t first) { return self.slice(axis, first, std::nullopt, 2).contiguous(); };
    if (call.op.kind == "split") return Results{every_second(0), every_second(1)};
    const c10::IValue start = call.value("start");
    return Results{every_second(start.isInt() && start.toInt() == half ? 1 : 0)};
  });
  to.back().joint = op.kind == "slice";  // the other half is another op
}

}  // namespace

int64_t gated_with(const ProgramIndex& program, int64_t id) {
  std::vector<int64_t> todo{id};
  std::set<int64_t> seen(todo.begin(), todo.end());
  for (size_t next = 0; next < todo.size() && next < kLongestActivation; ++next)
    for (const int reader : program.consumers(todo[next])) {
      const Op& op = program.op(reader);
      if (!is_elementwise(op)) continue;
      if (op.kind == "mul" || op.kind == "mul_") {
        const auto [gate, up] = gate_and_up(program, reader);
        if (gate == id || up == id) return gate == id ? up : gate;
      }
      for (const auto& output : op.outputs)
        if (output && seen.insert(output->id).second) todo.push_back(output->id);
    }
  return -1;
}

bool holds_gate_and_up(const ProgramIndex& program, int64_t id, int views) {
  for (const int reader : program.consumers(id)) {
    const Op& op = program.op(reader);
    if (!op.view && !op.kind.starts_with("_unsafe_view")) continue;
    for (const auto& output : op.outputs) {
      if (!output) continue;
      const int64_t partner = gated_with(program, output->id);
      const int made = partner < 0 ? -1 : program.producer(partner);
      if (made >= 0 && program.argument(made, 0) == id) return true;
      if (views > 0 && holds_gate_and_up(program, output->id, views - 1)) return true;
    }
  }
  return false;
}

void gated_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  if (is_activation_op(program.op(index))) other_one_activated(program, index, to);
  layers_exchanged(program, index, to);
  halves_interleaved(program, index, to);
}

}  // namespace parity

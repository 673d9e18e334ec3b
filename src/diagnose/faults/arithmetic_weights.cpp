// Weights held in a narrower format than the reference has them.
#include <fmt/format.h>

#include <array>

#include "diagnose/faults/arithmetic.hpp"
#include "diagnose/faults/arithmetic_constants.hpp"
#include "diagnose/faults/number_formats.hpp"

namespace parity {
namespace {

// Along `axis` lie the numbers that one output feature sums over.
using Quantised = at::Tensor (*)(const at::Tensor& weight, int64_t axis);

at::Tensor plain_bf16(const at::Tensor& w, int64_t) { return to_bf16(w); }
at::Tensor plain_fp16(const at::Tensor& w, int64_t) { return to_fp16(w); }
at::Tensor e4m3_per_tensor(const at::Tensor& w, int64_t) { return scaled_to(w, {}, kLargestE4m3, to_e4m3); }
at::Tensor e4m3_per_channel(const at::Tensor& w, int64_t a) { return scaled_to(w, {a}, kLargestE4m3, to_e4m3); }
at::Tensor int8_per_tensor(const at::Tensor& w, int64_t) { return to_integers(w, {}, kLargestInt8); }
at::Tensor int8_per_channel(const at::Tensor& w, int64_t a) { return to_integers(w, {a}, kLargestInt8); }
at::Tensor int8_asymmetric(const at::Tensor& w, int64_t a) { return to_int8_asymmetric(w, a); }
template <int steps>
at::Tensor int8_moved(const at::Tensor& w, int64_t a) {
  return to_int8_moved(w, a, steps);
}
template <int steps>
at::Tensor int8_asymmetric_moved(const at::Tensor& w, int64_t a) {
  return to_int8_asymmetric(w, a, {.moved = steps});
}
at::Tensor int8_no_zero(const at::Tensor& w, int64_t a) {
  return to_int8_asymmetric(w, a, {.none = true, .stored_from = -1 - kLargestInt8});
}
at::Tensor q8_0(const at::Tensor& w, int64_t a) { return to_q8_0(w, a, kBlock32); }
at::Tensor q4_0(const at::Tensor& w, int64_t a) { return to_q4_0(w, a, kBlock32); }
at::Tensor mxfp4(const at::Tensor& w, int64_t a) { return to_mxfp4(w, a, kBlock32); }
template <int64_t group>
at::Tensor int4_groups(const at::Tensor& w, int64_t a) {
  return to_int4_groups(w, a, group);
}
template <int64_t group>
at::Tensor int4_asymmetric(const at::Tensor& w, int64_t a) {
  return to_int4_asymmetric(w, a, group);
}

struct WeightFormat {
  const char* name;
  Quantised weight;
  Quantised input = nullptr;  // what engines that multiply in this format round the other operand to
  const char* input_name = "";
};
constexpr std::array kWeightFormats{
    WeightFormat{"bf16", plain_bf16},
    WeightFormat{"fp16", plain_fp16},
    WeightFormat{"Q8_0", q8_0, q8_0, "Q8_0"},  // ggml
    WeightFormat{"Q4_0", q4_0, q8_0, "Q8_0"},  // ggml
    WeightFormat{"int8 per channel", int8_per_channel, int8_per_channel, "int8 per token"},
    WeightFormat{"int8 per tensor", int8_per_tensor, int8_per_tensor, "int8 per tensor"},
    WeightFormat{"int8 asymmetric per channel", int8_asymmetric},
    WeightFormat{"int8 per channel, zero point one too high", int8_moved<1>},
    WeightFormat{"int8 per channel, zero point one too low", int8_moved<-1>},
    WeightFormat{"int8 asymmetric per channel, zero point one too high", int8_asymmetric_moved<1>},
    WeightFormat{"int8 asymmetric per channel, zero point one too low", int8_asymmetric_moved<-1>},
    WeightFormat{"int8 asymmetric per channel, zero point of signed bytes left out", int8_no_zero},
    WeightFormat{"fp8 e4m3 per channel", e4m3_per_channel, e4m3_per_channel, "fp8 e4m3 per token"},
    WeightFormat{"fp8 e4m3 per tensor", e4m3_per_tensor, e4m3_per_tensor, "fp8 e4m3 per tensor"},
    WeightFormat{"MXFP4", mxfp4},
    WeightFormat{"int4, groups of 32", int4_groups<32>},
    WeightFormat{"int4, groups of 64", int4_groups<64>},
    WeightFormat{"int4, groups of 128", int4_groups<128>},
    WeightFormat{"int4 asymmetric, groups of 32", int4_asymmetric<32>},
    WeightFormat{"int4 asymmetric, groups of 64", int4_asymmetric<64>},
    WeightFormat{"int4 asymmetric, groups of 128", int4_asymmetric<128>}};

// Where an op has its weight, and its axis that is summed over; the other operand's is always the last but for
// convolutions.
struct WeightPlace {
  size_t position = 0;
  std::string_view name;
  int64_t axis = 0;
  std::string_view input;  // empty: no product
};

std::optional<WeightPlace> weight_place(const ProgramIndex& program, int index) {
  const Op& op = program.op(index);
  std::optional<WeightPlace> place;
  if (op.kind == "mm") place = {1, "mat2", 0, "self"};
  if (op.kind == "addmm") place = {2, "mat2", 0, "mat1"};
  if (op.kind == "linear") place = {1, "weight", 1, "input"};
  if (op.kind == "convolution") place = {1, "weight", 1, ""};
  if (op.kind == "embedding") place = {0, "weight", 1, ""};
  if (!place || !is_weight(program, program.argument(index, place->position))) return std::nullopt;
  return place;
}

Rewrite held(const WeightPlace& place, Quantised weight, Quantised input) {
  return [place, weight, input](OpCall& call) {
    as_floats(call);
    const at::Tensor w = call.tensor(place.name);
    if (w.dim() > 2)  // a convolution's: everything of one output feature
      call.set(place.name, weight(w.flatten(1), place.axis).view_as(w));
    else
      call.set(place.name, weight(w, place.axis));
    if (input != nullptr) call.set(place.input, input(call.tensor(place.input), -1));
    return call.run_again();
  };
}

}  // namespace

bool is_weight(const ProgramIndex& program, int64_t id) {
  constexpr int kViews = 4;
  return program.leaf_behind(id, kViews) != nullptr;
}

void narrow_weights(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::optional<WeightPlace> place = weight_place(program, index);
  if (!place) return;
  const size_t before = to.size();
  for (const WeightFormat& f : kWeightFormats) {
    const std::string fault = fmt::format("weights: {}", f.name);
    add_arithmetic(to, program, index, fault, fmt::format("weights held in {}", f.name),
                   held(*place, f.weight, nullptr));
    if (f.input != nullptr && !place->input.empty())
      add_arithmetic(to, program, index, fault,
                     fmt::format("weights held in {}, inputs rounded to {}", f.name, f.input_name),
                     held(*place, f.weight, f.input));
  }
  for (size_t i = before; i < to.size(); ++i) to[i].by_elements = true;
}

}  // namespace parity

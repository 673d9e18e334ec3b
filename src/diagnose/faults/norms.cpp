// LayerNorm, RMSNorm and the norms of channels: biased or unbiased variance, gain, bias, mean, per-head statistics,
// groups. Their eps: norm_eps.cpp.
#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <set>

#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

at::Tensor or_ones(const at::Tensor& weight, const at::Tensor& like) {
  return weight.defined() ? weight : at::ones({like.size(-1)}, like.options());
}

// Over another axis than the last: (x - mean) / sqrt(var + eps), or x / rms.
at::Tensor normalised(const at::Tensor& x, int64_t axis, double eps, bool centre) {
  const at::Tensor centred = centre ? x - x.mean(axis, true) : x;
  return centred * at::rsqrt(centred.square().mean(axis, true) + eps);
}

void other_axes(const ProgramIndex& program, int index, bool centre, Hypotheses& to) {
  const Value* value = program.value(program.argument(index, 0));
  if (value == nullptr) return;
  for (int64_t axis = 0; axis + 1 < static_cast<int64_t>(value->shape.size()); ++axis)
    if (value->shape[axis] > 1)
      add_fault(to, program, index, "wrong normalised axis", fmt::format("statistics over axis {}", axis),
                [axis, centre](OpCall& call) {
                  Results results = call.run_again();
                  const at::Tensor input = call.tensor("input"), bias = call.tensor("bias");
                  const c10::IValue eps = call.value("eps");
                  const at::Tensor out = normalised(input, axis, eps.isNone() ? kEpsOfFlax : eps.toDouble(), centre) *
                                         or_ones(call.tensor("weight"), input);
                  results[0] = bias.defined() ? out + bias : out;
                  return results;
                });
}

// Statistics of a written-out norm (a mean of squares, a vector norm) over another axis.
void other_reduction(const ProgramIndex& program, int index, Hypotheses& to) {
  const Value* input = program.value(program.argument(index, 0));
  if (input == nullptr) return;
  for (int64_t axis = 0; axis < static_cast<int64_t>(input->shape.size()); ++axis)
    if (input->shape[axis] > 1)
      add_fault(to, program, index, "wrong normalised axis", fmt::format("statistics over axis {}", axis),
                [axis](OpCall& call) {
                  call.set("dim", std::vector<int64_t>{axis});
                  call.set("keepdim", true);
                  return call.run_again();
                });
}

// sqrt(n / (n - 1)) less, a root of another mean.
void vector_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  other_reduction(program, index, to);
  add_fault(to, program, index, "unbiased variance", "divided by n - 1", [](OpCall& call) {
    Results results = call.run_again();
    const double n = static_cast<double>(call.tensor("self").size(call.value("dim").toIntVector().at(0)));
    results[0] = *results[0] * std::sqrt(n / (n - 1));
    return results;
  });
}

// One kernel's LayerNorm written out in the tensor's own half dtype, each step rounded.
void narrow_layer_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto dtype = program.op(index).outputs[0] ? program.op(index).outputs[0]->dtype : at::kFloat;
  if (dtype != at::kBFloat16 && dtype != at::kHalf) return;
  for (const bool statistics : {true, false}) {
    FaultHypothesis h{"extra rounding", statistics ? "each step of the norm rounded" : "the normalised value rounded",
                      program.place(index), Gate::dtype_path};
    h.deviation.rewrites[index] = [statistics, dtype](OpCall& call) {
      const auto r = [&](const at::Tensor& t) { return t.to(dtype).to(at::kDouble); };
      const auto s = [&](const at::Tensor& t) { return statistics ? r(t) : t; };
      Results results = call.run_again();
      const at::Tensor x = call.tensor("input"), weight = call.tensor("weight"), bias = call.tensor("bias");
      const at::Tensor centred = s(x - s(x.mean(-1, true)));
      const at::Tensor variance = s(s(centred.square()).mean(-1, true));
      at::Tensor out = r(centred * s(at::rsqrt(s(variance + call.value("eps").toDouble()))));
      if (weight.defined()) out = r(out * weight);
      if (bias.defined()) out = r(out + bias);
      results[0] = out.to(dtype);
      return results;
    };
    to.push_back(std::move(h));
  }
}

// x + f(norm(x)) with the normed value as its first term: the residual begins after the norm.
void residual_of_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  const int64_t x = program.argument(index, 0);
  for (const int sum : program.consumers(x)) {
    if (sum <= index || program.op(sum).name != "aten::add.Tensor" || program.number(sum, 1)) continue;
    FaultHypothesis h{"residual missing", "the normed value added instead", program.place(sum)};
    const auto kept = std::make_shared<at::Tensor>();
    h.deviation.rewrites[index] = [kept](OpCall& call) {
      Results results = call.run_again();
      *kept = *results[0];
      return results;
    };
    h.deviation.rewrites[sum] = [kept, own = program.argument(sum, 0) == x ? "self" : "other"](OpCall& call) {
      call.set(own, *kept);
      return call.run_again();
    };
    to.push_back(std::move(h));
  }
}

// The gain of a fused norm: left out, or stored as what is added to one.
void norm_gain(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "missing norm gain", "weight left out", [](OpCall& call) {
    call.set("weight", c10::IValue());
    return call.run_again();
  });
  add_fault(to, program, index, "one plus forgotten", "gain is weight + 1 on one side", [](OpCall& call) {
    call.set("weight", call.tensor("weight") + 1);
    return call.run_again();
  });
}

void norm_bias(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "missing bias", "norm's bias left out", [](OpCall& call) {
    call.set("bias", c10::IValue());
    return call.run_again();
  });
}

// Rounded once, after the change: a second rounding would hide single bits of it.
Results wide_if_exact(OpCall& call) { return call.unrounded ? call.unrounded(call.arguments) : call.run_again(); }

void layer_norm_statistics(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "unbiased variance", "divided by n - 1", [](OpCall& call) {
    Results results = wide_if_exact(call);
    const at::Tensor input = call.tensor("input"), bias = call.tensor("bias");
    const double n = static_cast<double>(input.size(-1));
    at::Tensor centred = bias.defined() ? *results[0] - bias : *results[0];
    centred = centred * std::sqrt((n - 1) / n);
    results[0] = bias.defined() ? centred + bias : centred;
    return results;
  });
  add_fault(to, program, index, "norm without mean", "the mean is not subtracted", [](OpCall& call) {
    Results results = call.run_again();
    const at::Tensor input = call.tensor("input"), bias = call.tensor("bias");
    const double e = call.value("eps").toDouble();
    at::Tensor out = input * at::rsqrt(input.pow(2).mean(-1, true) + e) * or_ones(call.tensor("weight"), input);
    results[0] = bias.defined() ? out + bias : out;
    return results;
  });
  other_axes(program, index, true, to);
}

void layer_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  residual_of_norm(program, index, to);
  layer_norm_statistics(program, index, to);
  narrow_layer_norm(program, index, to);
  if (program.argument(index, 2) >= 0) norm_gain(program, index, to);
  if (program.argument(index, 3) >= 0) norm_bias(program, index, to);
}

// A channel's number, beside (batch, channels, …).
at::Tensor by_channel(const at::Tensor& t, const at::Tensor& values) {
  std::vector<int64_t> shape(values.dim(), 1);
  shape.at(1) = t.numel();
  return t.reshape(shape);
}

void group_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "unbiased variance", "divided by n - 1", [](OpCall& call) {
    Results results = wide_if_exact(call);
    const at::Tensor bias = call.tensor("bias");
    const at::Tensor shift = bias.defined() ? by_channel(bias, *results[0]) : at::zeros({1}, results[0]->options());
    const int64_t groups = call.value("N").toInt() * call.value("group").toInt();
    const auto n = static_cast<double>(results[0]->numel() / groups);
    results[0] = (*results[0] - shift) * std::sqrt((n - 1) / n) + shift;
    return results;
  });
  add_fault(to, program, index, "norm without mean", "the mean is not subtracted", [](OpCall& call) {
    Results results = call.run_again();
    const at::Tensor input = call.tensor("input"), weight = call.tensor("weight"), bias = call.tensor("bias");
    const at::Tensor x = input.reshape({call.value("N").toInt(), call.value("group").toInt(), -1});
    at::Tensor out = normalised(x, -1, call.value("eps").toDouble(), false).reshape(input.sizes());
    if (weight.defined()) out = out * by_channel(weight, input);
    results[0] = bias.defined() ? out + by_channel(bias, input) : out;
    return results;
  });
  const Value* input = program.value(program.argument(index, 0));
  const auto own = static_cast<int64_t>(program.number(index, 6).value_or(0));
  if (input == nullptr || input->shape.size() < 2) return;
  const int64_t channels = input->shape[1];
  for (const int64_t groups : std::set<int64_t>{1, own / 2, own * 2, 32, channels})
    if (groups > 0 && groups != own && channels % groups == 0)
      add_fault(to, program, index, "wrong groups", fmt::format("{} groups", groups), [groups](OpCall& call) {
        call.set("group", groups);
        return call.run_again();
      });
}

// What a model does that was not put into evaluation mode.
void batch_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.argument(index, 3) < 0) return;  // an instance's statistics
  add_fault(to, program, index, "statistics of the batch", "in place of the running ones", [](OpCall& call) {
    call.set("training", true);
    for (const char* running : {"running_mean", "running_var"})
      call.set(running, c10::IValue());  // else it writes them
    return call.run_again();
  });
}

void norm_of_channels(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.op(index).name == "aten::native_group_norm") group_norm(program, index, to);
  if (program.op(index).name == "aten::native_batch_norm") batch_norm(program, index, to);
  if (program.argument(index, 1) >= 0) norm_gain(program, index, to);
  if (program.argument(index, 2) >= 0) norm_bias(program, index, to);
}

// LayerNorm for RMSNorm, written out: x / rms(x), of x less its mean.
void centred(const ProgramIndex& program, int mean, Hypotheses& to) {
  const int square = program.producer(program.argument(mean, 0)), root = program.ahead(mean, "rsqrt", 3);
  if (square < 0 || root < 0 || program.argument(square, 0) < 0) return;
  const auto less_mean = [](OpCall& call) {
    const at::Tensor self = call.tensor("self");
    call.set("self", self - self.mean(-1, true));
    return call.run_again();
  };
  FaultHypothesis h{"norm with mean", "the mean is subtracted", program.place(mean)};
  for (const int reader : program.consumers(program.argument(square, 0)))
    if (reader == square || (reader > root && program.op(reader).kind == "mul"))
      h.deviation.rewrites[reader] = less_mean;
  if (h.deviation.rewrites.size() == 2) to.push_back(std::move(h));
}

// The mean of squares under a root: over each head alone, or n - 1.
void rms_mean(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.ahead(index, "rsqrt", 3) < 0) return;
  centred(program, index, to);
  other_reduction(program, index, to);
  const Value* rows = program.value(program.argument(index, 0));
  if (rows != nullptr && rows->shape.size() > 3)
    add_fault(to, program, index, "per-head norm", "statistics over all heads", [](OpCall& call) {
      call.set("dim", std::vector<int64_t>{-2, -1});
      return call.run_again();
    });
  add_fault(to, program, index, "unbiased variance", "divided by n - 1", [](OpCall& call) {
    Results results = call.run_again();
    const double n = static_cast<double>(call.tensor("self").size(-1));
    results[0] = *results[0] * (n / (n - 1));
    return results;
  });
  for (const int64_t parts : {2, 3, 4, 6, 8, 12, 16, 24, 32, 40}) {
    const Value* input = program.value(program.argument(index, 0));
    if (input == nullptr || input->shape.empty() || input->shape.back() % parts != 0 || input->shape.back() / parts < 4)
      continue;
    add_fault(to, program, index, "per-head norm", fmt::format("statistics over {} parts of the axis", parts),
              [parts](OpCall& call) {
                const at::Tensor self = call.tensor("self");
                const int64_t width = self.size(-1) / parts;
                const at::Tensor means = self.unflatten(-1, {parts, width}).mean(-1, true);
                return Results{means.expand_as(self.unflatten(-1, {parts, width})).flatten(-2)};
              });
  }
}

void fused_rms_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "norm with mean", "the mean is subtracted", [](OpCall& call) {
    const at::Tensor input = call.tensor("input");
    call.set("input", input - input.mean(-1, true));
    return call.run_again();
  });
  other_axes(program, index, false, to);
  if (program.argument(index, 2) >= 0) norm_gain(program, index, to);
}

}  // namespace

void norm_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::string& name = program.op(index).name;
  if (name == "aten::native_layer_norm") layer_norm(program, index, to);
  if (name == "aten::_fused_rms_norm") fused_rms_norm(program, index, to);
  if (name.starts_with("aten::native_group_norm") || name.starts_with("aten::native_batch_norm") ||
      name == "aten::_native_batch_norm_legit_no_training")
    norm_of_channels(program, index, to);
  if (name == "aten::linalg_vector_norm") vector_norm(program, index, to);
  if (name == "aten::mean.dim") rms_mean(program, index, to);
}

}  // namespace parity

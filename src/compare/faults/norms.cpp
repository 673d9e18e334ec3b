// LayerNorm and RMSNorm: eps, biased or unbiased variance, gain, bias, mean, per-head statistics.
#include <fmt/format.h>

#include <cmath>

#include "compare/faults/catalogue.hpp"

namespace parity {
namespace {

at::Tensor or_ones(const at::Tensor& weight, const at::Tensor& like) {
  return weight.defined() ? weight : at::ones({like.size(-1)}, like.options());
}

void layer_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto add = [&](const char* fault, const std::string& what, Rewrite rewrite, bool fixed = true) {
    add_fault(to, program, index, fault, what, std::move(rewrite), fixed);
  };
  const double eps = program.number(index, 4).value_or(1e-5), other = eps > 3e-6 ? 1e-6 : 1e-5;
  add(
      "norm eps", fmt::format("eps {:g} differs, tried {:g}", eps, other),
      [other](OpCall& call) {
        call.set("eps", other);
        return call.run_again();
      },
      false);
  add("norm eps", fmt::format("eps {:g} -> 1e-3", eps), [](OpCall& call) {
    call.set("eps", 1e-3);
    return call.run_again();
  });
  add("unbiased variance", "divided by n - 1", [](OpCall& call) {
    Results results = call.run_again();
    const at::Tensor input = call.tensor("input"), bias = call.tensor("bias");
    const double n = static_cast<double>(input.size(-1));
    at::Tensor centred = bias.defined() ? *results[0] - bias : *results[0];
    centred = centred * std::sqrt((n - 1) / n);
    results[0] = bias.defined() ? centred + bias : centred;
    return results;
  });
  add("norm without mean", "the mean is not subtracted", [](OpCall& call) {
    Results results = call.run_again();
    const at::Tensor input = call.tensor("input"), bias = call.tensor("bias");
    const double e = call.value("eps").toDouble();
    at::Tensor out = input * at::rsqrt(input.pow(2).mean(-1, true) + e) * or_ones(call.tensor("weight"), input);
    results[0] = bias.defined() ? out + bias : out;
    return results;
  });
  if (program.argument(index, 2) >= 0) {
    add("missing norm gain", "weight left out", [](OpCall& call) {
      call.set("weight", c10::IValue());
      return call.run_again();
    });
    add("one plus forgotten", "gain is weight + 1 on one side", [](OpCall& call) {
      call.set("weight", call.tensor("weight") + 1);
      return call.run_again();
    });
  }
  if (program.argument(index, 3) >= 0)
    add("missing bias", "norm's bias left out", [](OpCall& call) {
      call.set("bias", c10::IValue());
      return call.run_again();
    });
}

// x * rsqrt(mean(x^2) + eps): the addition of eps.
void rms_eps(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto eps = program.number(index, 1);
  if (!eps || *eps <= 0 || *eps > 1e-2 || program.ahead(index, "rsqrt", 1) < 0) return;
  for (const double other : {*eps > 3e-6 ? 1e-6 : 1e-5, 1e-3})
    add_fault(
        to, program, index, "norm eps", fmt::format("eps {:g} differs, tried {:g}", *eps, other),
        [other](OpCall& call) {
          call.set("other", other);
          return call.run_again();
        },
        other == 1e-3);
}

// The mean of squares under a root: over each head alone, or n - 1.
void rms_mean(const ProgramIndex& program, int index, Hypotheses& to) {
  if (program.ahead(index, "rsqrt", 3) < 0) return;
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
    add_fault(
        to, program, index, "per-head norm", fmt::format("statistics over {} parts of the axis", parts),
        [parts](OpCall& call) {
          const at::Tensor self = call.tensor("self");
          const int64_t width = self.size(-1) / parts;
          return Results{self.unflatten(-1, {parts, width}).mean(-1, true).expand({-1, -1, parts, width}).flatten(-2)};
        });
  }
}

void fused_rms_norm(const ProgramIndex& program, int index, Hypotheses& to) {
  for (const double other : {1e-6, 1e-5})
    add_fault(
        to, program, index, "norm eps", fmt::format("eps differs, tried {:g}", other),
        [other](OpCall& call) {
          call.set("eps", other);
          return call.run_again();
        },
        false);
  if (program.argument(index, 2) < 0) return;
  add_fault(to, program, index, "missing norm gain", "weight left out", [](OpCall& call) {
    call.set("weight", c10::IValue());
    return call.run_again();
  });
  add_fault(to, program, index, "one plus forgotten", "gain is weight + 1 on one side", [](OpCall& call) {
    call.set("weight", call.tensor("weight") + 1);
    return call.run_again();
  });
}

}  // namespace

void norm_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::string& name = program.op(index).name;
  if (name == "aten::native_layer_norm") layer_norm(program, index, to);
  if (name == "aten::_fused_rms_norm") fused_rms_norm(program, index, to);
  if (name == "aten::add.Tensor" || name == "aten::add.Scalar") rms_eps(program, index, to);
  if (name == "aten::mean.dim") rms_mean(program, index, to);
}

}  // namespace parity

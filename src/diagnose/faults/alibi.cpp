// Attention with linear biases (ALiBi; Press et al., arXiv 2108.12409): to the scores is added the distance of query
// and key times a slope for each head, 2^(-8 i / heads), i from 1.
#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

constexpr int kNear = 8;  // ops from a power to the cosines of a rotary embedding's table

void other_slopes(const ProgramIndex& program, int index, Hypotheses& to) {
  struct Exponents {
    const char* what;
    at::Tensor (*of)(const at::Tensor& exponents, const at::Tensor& first);  // (heads), (1)
  };
  static constexpr Exponents kOthers[]{
      {"heads counted from 0", [](const at::Tensor& e, const at::Tensor& first) { return e - first; }},
      {"heads counted from 2", [](const at::Tensor& e, const at::Tensor& first) { return e + first; }},
      {"exponents doubled", [](const at::Tensor& e, const at::Tensor&) { return e * 2; }},
      {"exponents halved", [](const at::Tensor& e, const at::Tensor&) { return e / 2; }},
      {"heads in reverse", [](const at::Tensor& e, const at::Tensor&) { return e.flip(0); }}};
  for (const Exponents& other : kOthers)
    add_fault(to, program, index, "ALiBi slopes", other.what, [of = other.of](OpCall& call) {
      const at::Tensor exponents = call.tensor("exponent");
      if (exponents.dim() != 1 || exponents.size(0) < 2) throw std::runtime_error("no slopes of heads");
      call.set("exponent", of(exponents.to(at::kDouble), exponents.slice(0, 0, 1)));
      return call.run_again();
    });
}

// Bloom: what falls with the distance, and the product times alpha.
void bias_and_scores(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "attention scale", "scores not scaled",
            [](OpCall& call) { return call.set("alpha", c10::Scalar(1)), call.run_again(); });
  add_fault(to, program, index, "attention scale", "scores scaled twice", [](OpCall& call) {
    const double alpha = call.value("alpha").toScalar().toDouble();
    return call.set("alpha", c10::Scalar(alpha * alpha)), call.run_again();
  });
  add_fault(to, program, index, "attention scale", "what is added to the scores scaled, too",
            [](OpCall& call) { return call.set("beta", call.value("alpha")), call.run_again(); });
  add_fault(to, program, index, "missing bias", "nothing added to the scores",
            [](OpCall& call) { return call.set("beta", c10::Scalar(0)), call.run_again(); });
}

}  // namespace

bool makes_slopes(const ProgramIndex& program, int power) {
  constexpr int kCasts = 3;
  if (program.op(power).kind != "pow" || program.behind(power, "arange", kCasts) < 0) return false;
  return program.ahead(power, "cos", kNear) < 0 && program.ahead(power, "sin", kNear) < 0;
}

void alibi_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  if (makes_slopes(program, index)) other_slopes(program, index, to);
  if (program.op(index).kind == "baddbmm" && program.ahead(index, "_softmax", 4) >= 0)
    bias_and_scores(program, index, to);
}

}  // namespace parity

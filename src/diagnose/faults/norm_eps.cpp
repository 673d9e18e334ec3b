// The eps of norms: of free size, whose amplitude is estimated, and each of those that libraries use, which a port on
// the same library has to the last bit.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/dtype_kind.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/constants.hpp"
#include "diagnose/limits.hpp"

namespace parity {
namespace {

// Of the sizes that a free one may have, those that leave it positive and no larger than a norm's values are after it;
// twice as far, for the change is not quite linear.
void only_as_eps(FaultHypothesis& h, double eps, double tried) {
  const double to_zero = -eps / (tried - eps), to_largest = (kRecognition.largest_wrong_eps - eps) / (tried - eps);
  h.least = 2 * std::min(to_zero, to_largest);
  h.most = 2 * std::max(to_zero, to_largest);
}

struct NormOp {
  std::string_view name;
  size_t eps;  // position of the argument
  double default_eps;
};

constexpr std::array kNormOps{
    NormOp{"aten::native_layer_norm", 4, kEpsOfTorch},
    NormOp{"aten::native_group_norm", 7, kEpsOfTorch},
    NormOp{"aten::native_batch_norm", 7, kEpsOfTorch},
    NormOp{"aten::_native_batch_norm_legit_no_training", 6, kEpsOfTorch},
    NormOp{"aten::_fused_rms_norm", 3, std::numeric_limits<float>::epsilon()},  // as torch.nn.RMSNorm without one
};

// Of the two that most libraries use the other one.
double other_eps(double eps) { return eps * eps > kEpsOfTorch * kEpsOfFlax ? kEpsOfFlax : kEpsOfTorch; }

bool same_eps(double a, double b) { return std::abs(a - b) <= kRecognition.listed.value * b; }

Rewrite with_argument(const char* name, double value) {
  return [name, value](OpCall& call) {
    call.set(name, value);
    return call.run_again();
  };
}

// In half width another library's root flips the elements that such a change flips. The last of the results of a fused
// norm is the reciprocal root, one number a row.
bool as_another_library(const Results& before, const Results& after) {
  const auto &was = before.back(), &is = after.back();
  if (before.size() < 2 || !was || !is || was->numel() == 0) return false;
  return (is->to(at::kDouble) / was->to(at::kDouble) - 1).abs().max().item<double>() < kRootOfLibraries;
}

void add_listed(Hypotheses& to, const ProgramIndex& program, int index, double eps, int64_t statistics,
                const std::function<Rewrite(double other)>& with) {
  for (const double other : kEpsTried) {
    if (same_eps(eps, other)) continue;
    add_fault(to, program, index, "norm eps", fmt::format("eps {:g} -> {:g}", eps, other), with(other));
    to.back().deviation.own_kernels = true;  // its sums are what they were
    to.back().statistics = statistics;
  }
}

// How many roots a fused norm takes, of elements that stand behind one another: not a batch norm's, of a channel each.
int64_t statistics_of(const Op& op) {
  const auto& root = op.outputs.back();
  return root && op.name.find("batch_norm") == std::string::npos ? root->elements() : 0;
}

void fused_norm_eps(const ProgramIndex& program, int index, const NormOp& norm, Hypotheses& to) {
  const double eps = program.number(index, norm.eps).value_or(norm.default_eps), tried = other_eps(eps);
  add_fault(to, program, index, "norm eps", fmt::format("eps {:g} differs, tried {:g}", eps, tried),
            with_argument("eps", tried), false);
  only_as_eps(to.back(), eps, tried);
  const int64_t statistics = to.back().statistics = statistics_of(program.op(index));
  add_listed(to, program, index, eps, statistics, [](double other) -> Rewrite {
    return [other](OpCall& call) {
      const Results before = is_half(call.tensor("input").scalar_type()) ? call.run_again() : Results();
      call.set("eps", other);
      Results after = call.run_again();
      return !before.empty() && as_another_library(before, after) ? before : after;
    };
  });
}

// x * rsqrt(mean(x^2) + eps), or over its root: the addition of eps.
void written_out_norm_eps(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto eps = program.number(index, 1);
  const bool rooted = program.ahead(index, "rsqrt", 1) >= 0 || program.ahead(index, "sqrt", 1) >= 0;
  if (!eps || *eps <= 0 || *eps > kRecognition.largest_eps || !rooted) return;
  const double tried = other_eps(*eps);
  add_fault(to, program, index, "norm eps", fmt::format("eps {:g} differs, tried {:g}", *eps, tried),
            with_argument("other", tried), false);
  only_as_eps(to.back(), *eps, tried);
  const bool half = program.half().has_value();
  const auto& mean = program.op(index).outputs.at(0);
  const int64_t statistics = to.back().statistics = mean ? mean->elements() : 0;
  add_listed(to, program, index, *eps, statistics, [own = *eps, half](double other) -> Rewrite {
    if (!half) return with_argument("other", other);
    return [own, other](OpCall& call) {
      const at::Tensor sums = call.tensor("self").to(at::kDouble) + own;
      const double change = (((sums - own + other) / sums).rsqrt() - 1).abs().max().item<double>();
      if (change >= kRootOfLibraries) call.set("other", other);
      return call.run_again();
    };
  });
}

// Of a vector's norm, which has none.
void vector_norm_eps(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto with = [](double eps) -> Rewrite {
    return [eps](OpCall& call) {
      Results results = call.run_again();
      const c10::IValue dims = call.value("dim");
      const double n = dims.isNone() ? 1 : static_cast<double>(call.tensor("self").size(dims.toIntVector().at(0)));
      results[0] = (results[0]->square() + eps * n).sqrt();
      return results;
    };
  };
  add_fault(to, program, index, "norm eps", fmt::format("eps under the root, tried {:g} of the mean", kEpsOfFlax),
            with(kEpsOfFlax), false);
  for (const double eps : kEpsTried)
    add_fault(to, program, index, "norm eps", fmt::format("eps {:g} under the root of the mean", eps), with(eps));
}

}  // namespace

void norm_eps_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const auto &name = program.op(index).name, &kind = program.op(index).kind;
  for (const NormOp& norm : kNormOps)
    if (name == norm.name) fused_norm_eps(program, index, norm, to);
  if (kind == "add" || kind == "add_") written_out_norm_eps(program, index, to);
  if (name == "aten::linalg_vector_norm") vector_norm_eps(program, index, to);
}

}  // namespace parity

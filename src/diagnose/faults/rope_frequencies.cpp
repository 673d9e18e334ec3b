// Stored frequencies of a rotary embedding in half width: model.to(bfloat16) rounds the buffer `inv_freq`, which a
// model that is loaded in that dtype keeps in fp32. Each side may be the one that rounds.
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>

#include "core/precision.hpp"
#include "diagnose/faults/catalogue.hpp"
#include "diagnose/faults/rope_bases.hpp"

namespace parity {
namespace {

constexpr int64_t kFewest = 4;  // frequencies: fewer are in half width by chance

// The base of which `f` are the frequencies base^(-i / n), rounded: each of them allows an interval, and of what they
// all allow the number of fewest digits is it.
std::optional<double> base_of_rounded(const at::Tensor& f, double roundoff) {
  const double* x = f.const_data_ptr<double>();
  const auto n = static_cast<double>(f.numel());
  double least = 0, most = std::numeric_limits<double>::infinity();  // of its logarithm
  for (int64_t i = 1; i < f.numel(); ++i) {
    const double power = -n / static_cast<double>(i);
    least = std::max(least, power * std::log(x[i] * (1 + roundoff)));
    most = std::min(most, power * std::log(x[i] * (1 - roundoff)));
  }
  if (x[0] != 1 || !(least < most)) return std::nullopt;
  constexpr int kMostDigits = 4;
  const double middle = std::exp((least + most) / 2);
  for (int digits = 1; digits <= kMostDigits; ++digits) {
    const double unit = std::pow(10, std::floor(std::log10(middle)) - digits + 1),
                 base = std::round(middle / unit) * unit;
    if (std::log(base) >= least && std::log(base) <= most) return base;
  }
  return std::nullopt;
}

// The frequencies before they were rounded; fp64, [n].
at::Tensor unrounded(const at::Tensor& leaf, at::ScalarType half) {
  const at::Tensor f = leaf.flatten().to(at::kCPU, at::kDouble).contiguous();
  if (f.numel() < kFewest || !f.to(half).to(at::kDouble).equal(f)) throw std::runtime_error("not rounded");
  const auto base = base_of_rounded(f, unit_roundoff(half));
  if (!base) throw std::runtime_error("of no base");
  const at::Tensor place = at::arange(f.numel(), f.options()) / static_cast<double>(f.numel());
  const at::Tensor whole = (-std::log(*base) * place).exp();
  if (!whole.to(half).to(at::kDouble).equal(f)) throw std::runtime_error("of another law");
  return whole;
}

// `whole` in the place of the n frequencies that `t` holds along one axis.
at::Tensor in_place_of(const at::Tensor& t, const at::Tensor& whole) {
  for (int64_t axis = t.dim(); axis-- > 0;)
    if (t.size(axis) == whole.numel()) {
      std::vector<int64_t> shape(static_cast<size_t>(t.dim()), 1);
      shape[static_cast<size_t>(axis)] = whole.numel();
      return whole.to(t.options()).view(shape).expand(t.sizes());
    }
  throw std::runtime_error("in another shape");
}

void add(const ProgramIndex& program, int index, const char* fault, const std::string& what, Rewrite rewrite,
         Hypotheses& to) {
  add_fault(to, program, index, fault, what, std::move(rewrite));
  to.back().gate = Gate::dtype_path;
  to.back().rank = -1;  // predicts each of them; another base, or none of them scaled, may come as near
}

}  // namespace

void rope_frequency_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  if (!makes_angles(program, index, kStepsToAngles)) return;
  for (const size_t position : {0, 1}) {
    const Leaf* leaf = stored_frequencies(program, index, position);
    if (leaf == nullptr) continue;
    for (const at::ScalarType half : {at::kBFloat16, at::kHalf}) {
      if (!program.half())  // of programs in half width every stored number is tried (casts.cpp)
        add(
            program, index, "extra rounding", fmt::format("frequencies rounded to {}", c10::toString(half)),
            [position, half](OpCall& call) {
              const at::Tensor own = call.arguments.at(position).toTensor();
              call.arguments[position] = own.to(half).to(own.scalar_type());
              return call.run_again();
            },
            to);
      add(
          program, index, "missing rounding", fmt::format("frequencies not rounded to {}", c10::toString(half)),
          [position, half, id = leaf->value.id](OpCall& call) {
            const at::Tensor own = call.arguments.at(position).toTensor();
            call.arguments[position] = in_place_of(own, unrounded(call.leaf(id), half));
            return call.run_again();
          },
          to);
      to.back().more_exact = true;  // an honest port computes its own; over few positions they are within the rounding
    }
  }
}

}  // namespace parity

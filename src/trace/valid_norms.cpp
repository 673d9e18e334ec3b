// Norms, softmax and reciprocal roots by other valid arithmetics. Statistics stay in the accumulation dtype and the
// result is rounded once, as in the kernels; the formula's order of operations differs.
#include <array>

#include "core/dtype_kind.hpp"
#include "trace/valid.hpp"

namespace parity {
namespace {

// The mean over the last axis, its sum taken as the arithmetic does.
at::Tensor mean_of(Arithmetic arithmetic, const at::Tensor& x) {
  std::vector<at::Tensor> sums;
  for (const SumPart& p : sum_parts(arithmetic, x.size(-1)))
    sums.push_back(x.slice(-1, p.begin, p.step == 1 ? p.begin + p.length : x.size(-1), p.step).sum({-1}, true));
  return added_up(arithmetic, std::move(sums)) / static_cast<double>(x.size(-1));
}

at::Tensor reciprocal_root(Arithmetic arithmetic, const at::Tensor& x) {
  return arithmetic == Arithmetic::pairwise ? 1 / x.sqrt() : x.rsqrt();
}

struct Centred {
  at::Tensor mean, variance;
};

// In two passes; `blocked` in one (mean of squares less squared mean: flax's fast variance).
Centred moments(Arithmetic arithmetic, const at::Tensor& x) {
  const at::Tensor mean = mean_of(arithmetic, x);
  if (arithmetic == Arithmetic::blocked) return {mean, (mean_of(arithmetic, x * x) - mean * mean).clamp_min(0)};
  const at::Tensor d = x - mean;
  return {mean, mean_of(arithmetic, d * d)};
}

at::Tensor normalised(Arithmetic arithmetic, const at::Tensor& x, const Centred& m, double eps, const at::Tensor& gain,
                      const at::Tensor& offset) {
  at::Tensor scale = reciprocal_root(arithmetic, m.variance + eps);
  if (arithmetic == Arithmetic::interleaved) {  // gain and mean folded into one multiplication and one addition
    if (gain.defined()) scale = scale * gain;
    at::Tensor shift = -m.mean * scale;
    return x * scale + (offset.defined() ? shift + offset : shift);
  }
  at::Tensor y = (x - m.mean) * scale;
  if (gain.defined()) y = y * gain;
  return offset.defined() ? y + offset : y;
}

at::Tensor widened_or_none(const at::Tensor& t, at::ScalarType wide) { return t.defined() ? t.to(wide) : t; }

bool over_last_axis(ValidCall& call) {
  const c10::IValue* shape = call.find("normalized_shape");
  return shape != nullptr && shape->toIntVector().size() == 1;
}

// Every argument over the last axis reversed.
Results reversed_norm(ValidCall& call) {
  for (const char* name : {"input", "weight", "bias"}) call.flip(name, -1);
  Results results = call.kernel(call.stack);
  if (!results.empty() && results[0]) results[0] = results[0]->flip({-1}).contiguous();
  return results;
}

std::optional<Results> layer_norm(ValidCall call) {
  if (!over_last_axis(call)) return std::nullopt;
  if (call.arithmetic == Arithmetic::reordered) return reversed_norm(call);
  const at::Tensor input = call.tensor("input");
  const at::ScalarType wide = sum_dtype(input.scalar_type());
  const at::Tensor x = input.to(wide);
  Results results = call.kernel(call.stack);  // mean and rstd of the kernel go on beside
  const at::Tensor y =
      normalised(call.arithmetic, x, moments(call.arithmetic, x), call.number("eps", 1e-5),
                 widened_or_none(call.tensor("weight"), wide), widened_or_none(call.tensor("bias"), wide));
  results[0] = y.to(results[0]->scalar_type()).contiguous();
  return results;
}

std::optional<Results> rms_norm(ValidCall call) {
  if (!over_last_axis(call)) return std::nullopt;
  if (call.arithmetic == Arithmetic::reordered) return reversed_norm(call);
  const at::Tensor input = call.tensor("input");
  const at::ScalarType wide = sum_dtype(input.scalar_type());
  const at::Tensor x = input.to(wide);
  Results results = call.kernel(call.stack);
  if (call.find("eps") == nullptr) return results;
  const Centred m{at::zeros({1}, x.options()), mean_of(call.arithmetic, x * x)};
  const at::Tensor y =
      normalised(call.arithmetic, x, m, call.number("eps", 0), widened_or_none(call.tensor("weight"), wide), {});
  results[0] = y.to(results[0]->scalar_type()).contiguous();
  return results;
}

constexpr int64_t kInOrder = 1 << 16;  // terms that a call each is worth

// The terms of each row (…, terms), one after the other into one sum, as a plain loop takes them.
at::Tensor sum_in_order(const at::Tensor& rows) {
  const at::Tensor terms = rows.movedim(-1, 0).contiguous();
  at::Tensor sum = at::zeros_like(terms[0]);
  for (int64_t k = 0; k < terms.size(0); ++k) sum.add_(terms[k]);
  return sum.unsqueeze(-1);
}

// Of a few groups the roundings of such sums do not average out: 3 u of all values in the direction of an eps.
Centred moments_in_order(const at::Tensor& rows) {
  const auto n = static_cast<double>(rows.size(-1));
  const at::Tensor mean = sum_in_order(rows) / n, d = rows - mean;
  return {mean, sum_in_order(d * d) / n};
}

// (batch, channels, …): the elements of a group are one row. `transposed`: LibTorch's kernel for the other memory
// layout, which takes a group's moments in one pass (6.7 u of a result in fp32 where its kernel for rows loses 1).
// `reordered`: each sum in order.
std::optional<Results> group_norm(ValidCall call) {
  if (call.arithmetic == Arithmetic::transposed) return by_other_layout(std::move(call), "input");
  const at::Tensor input = call.tensor("input"), weight = call.tensor("weight"), bias = call.tensor("bias");
  const c10::IValue* group = call.find("group");
  if (!input.defined() || group == nullptr || input.dim() < 2 || input.numel() == 0) return std::nullopt;
  const at::ScalarType wide = sum_dtype(input.scalar_type());
  const at::Tensor rows = input.to(wide).contiguous().reshape({input.size(0), group->toInt(), -1});
  const bool in_order = call.arithmetic == Arithmetic::reordered;
  if (in_order && rows.size(-1) > kInOrder) return std::nullopt;
  const Centred m = in_order ? moments_in_order(rows) : moments(call.arithmetic, rows);
  at::Tensor y = normalised(call.arithmetic, rows, m, call.number("eps", 1e-5), {}, {}).reshape(input.sizes());
  std::vector<int64_t> channels(input.dim(), 1);
  channels[1] = input.size(1);
  if (weight.defined()) y = y * weight.to(wide).reshape(channels);
  if (bias.defined()) y = y + bias.to(wide).reshape(channels);
  Results results = call.kernel(call.stack);
  results[0] = at::empty_like(*results[0]).copy_(y);  // strides and all: later kernels ask for them
  return results;
}

// v g / ||v||, a norm for each index of axis `dim`. `transposed`: the squares summed in order, as LibTorch's kernel
// does on one thread: 2.3 u of all values in one direction where two threads lose less than 1.
std::optional<Results> weight_norm(ValidCall call) {
  const at::Tensor v = call.tensor("v"), g = call.tensor("g");
  const c10::IValue* dim = call.find("dim");
  if (call.arithmetic == Arithmetic::reordered || !v.defined() || !g.defined() || v.numel() == 0) return std::nullopt;
  const at::ScalarType wide = sum_dtype(v.scalar_type());
  const at::Tensor rows = v.to(wide).movedim(dim == nullptr ? 0 : dim->toInt(), 0).flatten(1);
  const bool in_order = call.arithmetic == Arithmetic::transposed && rows.size(1) <= kInOrder;
  const at::Tensor squares =
      in_order ? sum_in_order(rows * rows).squeeze(-1)
               : mean_of(call.arithmetic, rows * rows).squeeze(-1) * static_cast<double>(rows.size(1));
  Results results = call.kernel(call.stack);
  const at::Tensor scale = g.to(wide) / squares.sqrt().reshape(g.sizes());
  results[0] = at::empty_like(*results[0]).copy_(v.to(wide) * scale);
  return results;
}

std::optional<Results> softmax(ValidCall call) {
  const c10::IValue* dim = call.find("dim");
  const at::Tensor self = call.tensor("self");
  if (dim == nullptr || !self.defined() || self.dim() == 0) return std::nullopt;
  const int64_t axis = dim->toInt();
  if (call.arithmetic == Arithmetic::reordered) {
    call.flip("self", axis);
    Results results = call.kernel(call.stack);
    results[0] = results[0]->flip({axis}).contiguous();
    return results;
  }
  const at::Tensor x = self.to(sum_dtype(self.scalar_type())).transpose(axis, -1);
  const at::Tensor e = (x - x.amax({-1}, true)).exp();
  const at::Tensor total = mean_of(call.arithmetic, e) * static_cast<double>(e.size(-1));
  const at::Tensor y = call.arithmetic == Arithmetic::interleaved ? e * total.reciprocal() : e / total;
  return Results{y.transpose(axis, -1).to(self.scalar_type()).contiguous()};
}

// Another library's reciprocal root: a root and a division. LibTorch itself rounds half widths between the two where it
// takes them one by one, the last of a tensor (rsqrt_kernel, ATen/native/cpu/UnaryOpsKernel.cpp): 26 % of elements
// differ.
std::optional<Results> rsqrt(ValidCall call) {
  const at::Tensor self = call.tensor("self");
  if (!self.defined()) return std::nullopt;
  if (call.arithmetic == Arithmetic::interleaved && is_half(self.scalar_type())) return Results{1 / self.sqrt()};
  if (call.arithmetic != Arithmetic::pairwise) return std::nullopt;
  return Results{(1 / self.to(sum_dtype(self.scalar_type())).sqrt()).to(self.scalar_type())};
}

constexpr std::array kNorms{
    ValidForm{"aten::native_layer_norm", layer_norm},
    ValidForm{"aten::_fused_rms_norm", rms_norm},
    ValidForm{"aten::native_group_norm", group_norm},
    ValidForm{"aten::_weight_norm_interface", weight_norm},
    ValidForm{"aten::_softmax", softmax},
    ValidForm{"aten::rsqrt", rsqrt},
};

}  // namespace

std::span<const ValidForm> valid_norms() { return kNorms; }

}  // namespace parity

#include "ops/fused_attention.hpp"

#include <ATen/Version.h>
#include <ATen/native/CPUBlas.h>

namespace parity::ops {
namespace {

bool packing_raises(const at::Tensor& q) {
  return q.is_cpu() && at::isReducedFloatingType(q.scalar_type()) && at::native::cpublas::could_pack(q.scalar_type()) &&
         !at::get_cpu_capability().starts_with("AVX512");
}

at::Tensor in_fp32(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, FusedForm form) {
  const auto wide = [](const at::Tensor& t) { return at::isFloatingType(t.scalar_type()) ? t.to(at::kFloat) : t; };
  if (form.mask.defined()) form.mask = wide(form.mask);
  return fused_attention(wide(q), wide(k), wide(v), form).to(q.scalar_type());
}

}  // namespace

at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const FusedForm& form) {
  const auto mask = form.mask.defined() ? std::optional(form.mask) : std::nullopt;
  try {
    return at::scaled_dot_product_attention(q, k, v, mask, 0., form.is_causal, form.scale, form.enable_gqa);
  } catch (const c10::Error&) {  // at sizes that are worth packing
    if (!packing_raises(q)) throw;
    return in_fp32(q, k, v, form);
  }
}

}  // namespace parity::ops

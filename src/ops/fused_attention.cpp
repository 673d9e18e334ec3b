#include "ops/fused_attention.hpp"

#include <ATen/Version.h>
#include <ATen/native/CPUBlas.h>

namespace parity::ops {
namespace {

bool packing_raises(at::ScalarType dtype) {
  return at::isReducedFloatingType(dtype) && at::native::cpublas::could_pack(dtype) &&
         !at::get_cpu_capability().starts_with("AVX512");
}

}  // namespace

at::Tensor fused_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const FusedForm& form) {
  const at::ScalarType dtype = q.scalar_type();
  if (packing_raises(dtype)) {
    const auto wide = [](const at::Tensor& t) { return at::isFloatingType(t.scalar_type()) ? t.to(at::kFloat) : t; };
    FusedForm in_fp32 = form;
    if (form.mask.defined()) in_fp32.mask = wide(form.mask);
    return fused_attention(wide(q), wide(k), wide(v), in_fp32).to(dtype);
  }
  const auto mask = form.mask.defined() ? std::optional(form.mask) : std::nullopt;
  return at::scaled_dot_product_attention(q, k, v, mask, 0., form.is_causal, form.scale, form.enable_gqa);
}

}  // namespace parity::ops

// One-line faults of real ports: each is seen, and seen first at the op that has it.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "wan_dumps.hpp"

using namespace parity;
using namespace parity::test;

namespace {

struct WanFault {
  std::string name, dump, first;  // the point where it must show first, teacher-forced
  Precision precision;            // fp64 shows logic, the recorded dtypes show casts
  void (*put)(WanOps& ops);
};

const std::vector<WanFault> kWanFaults = {
    {"LayerNorm eps 1e-5", "skyreels-v2-t2v.bf16", "blocks.0.norm1", Precision::fp64,
     [](WanOps& ops) {
       ops.layer_norm = [](auto& x, auto& w, auto& b, double, auto compute, auto out) {
         return ops::layer_norm(x, w, b, 1e-5, compute, out);
       };
     }},
    {"GELU erf for tanh", "diffusers-wan-t2v.bf16", "text_embedding.1", Precision::fp64,
     [](WanOps& ops) { ops.gelu = [](at::Tensor x, GeluForm) { return ops::gelu(std::move(x), GeluForm::erf); }; }},
    {"image GELU tanh for erf", "skyreels-v2-i2v.bf16", "img_emb.proj.2", Precision::fp64,
     [](WanOps& ops) { ops.gelu = [](at::Tensor x, GeluForm) { return ops::gelu(std::move(x), GeluForm::tanh); }; }},
    {"shift and scale swapped", "diffusers-skyreels-v2-df.bf16", "blocks.0/mul_add_add.0", Precision::fp64,
     [](WanOps& ops) {
       ops.modulate = [](at::Tensor x, auto& scale, auto& shift, Precision p) {
         return ops::mul_add_add(std::move(x), shift, scale, p);
       };
     }},
    {"1 + forgotten", "wan-t2v.bf16", "blocks.0/mul_add_add.0", Precision::fp64,
     [](WanOps& ops) {
       ops.modulate = [](at::Tensor x, auto& scale, auto& shift, Precision p) {
         return ops::mul_add_add(std::move(x), scale - 1, shift, p);
       };
     }},
    {"RoPE axes swapped", "skyreels-v2-t2v.fp32", "blocks.0.self_attn/rope.0", Precision::fp64,
     [](WanOps& ops) {
       ops.rope_turn = [](const RopeTable& table, const Grid& g) {
         auto turn = ops::rope_turn(table, {g[0], g[2], g[1]});
         return turn;
       };
     }},
    {"RoPE table axes swapped, diffusers", "diffusers-skyreels-v2-i2v.bf16", "rope/cos", Precision::fp64,
     [](WanOps& ops) {
       ops.rope_turn = [](const RopeTable& table, const Grid& g) {
         auto turn = ops::rope_turn(table, {g[0], g[2], g[1]});
         turn.cos = turn.cos.reshape({g[0], g[1], g[2], -1}), turn.sin = turn.sin.reshape({g[0], g[1], g[2], -1});
         return turn;
       };
     }},
    {"RoPE left out", "wan-i2v.bf16", "blocks.0.self_attn/rope.0", Precision::fp64,
     [](WanOps& ops) { ops.rope = [](auto& x, auto&, Precision) { return x.to(at::kDouble); }; }},
    {"RMS norm eps 1e-5", "diffusers-wan-t2v.bf16", "blocks.0.self_attn.norm_q", Precision::fp64,
     [](WanOps& ops) {
       ops.rms_norm = [](auto& x, auto& w, double, RmsForm f, Precision p) { return ops::rms_norm(x, w, 1e-5, f, p); };
     }},
    {"attention not causal", "skyreels-v2-df.bf16", "blocks.0.self_attn/attention.0", Precision::fp64,
     [](WanOps& ops) { ops.causal_mask = [](auto&, int64_t) { return at::Tensor(); }; }},
    {"one image token fewer", "skyreels-v2-i2v.bf16", "blocks.0.cross_attn.k", Precision::fp64,
     [](WanOps& ops) { ops.image_tokens = [](int64_t, const WanConfig& c) { return c.image_tokens - 1; }; }},
    {"gate missing", "wan-t2v.fp32", "blocks.0/mul_add.0", Precision::fp64,
     [](WanOps& ops) { ops.gate = [](auto& x, at::Tensor y, auto&, Precision) { return x + y; }; }},
    {"time step in bf16: 998 becomes 1000", "skyreels-v2-i2v.fp32", "condition/sinusoid", Precision::fp64,
     [](WanOps& ops) {
       ops.sinusoid = [](auto& t, int64_t width, SinusoidForm f, Precision p) {
         return ops::sinusoid(t.to(at::kBFloat16), width, f, p);
       };
     }},
    {"channels of the patch in another order", "diffusers-wan-t2v.bf16", "", Precision::fp64,
     [](WanOps& ops) {
       ops.unpatchify = [](auto& x, auto& grid, auto& patch) {
         return ops::unpatchify(x.unflatten(2, {4, -1}).transpose(2, 3).flatten(2), grid, patch);
       };
     }},
    {"stream not cast to the context's dtype", "skyreels-v2-t2v.bf16", "blocks.0/cast.2", Precision::recorded,
     [](WanOps& ops) {
       ops.cast = [](WanCast which, auto& x, auto to) { return which == WanCast::norm3_in ? x : x.to(to); };
     }},
    {"modulation in bf16", "diffusers-skyreels-v2-i2v.bf16", "blocks.0/modulation", Precision::recorded,
     [](WanOps& ops) {
       ops.modulation = [](auto& table, auto& e, int64_t axis) {
         return ops::modulation(table.to(at::kBFloat16), e.to(at::kBFloat16), axis).to(at::kFloat);
       };
     }},
    {"norm in bf16", "wan-t2v.bf16", "blocks.0.norm3", Precision::recorded,
     [](WanOps& ops) {
       ops.layer_norm = [](auto& x, auto& w, auto& b, double eps, auto, auto out) {
         return ops::layer_norm(x, w, b, eps, at::kBFloat16, out);
       };
     }},
    {"residual rounded", "skyreels-v2-df.bf16", "blocks.0/mul_add.0", Precision::recorded,
     [](WanOps& ops) {
       ops.gate = [](auto& x, at::Tensor y, auto& g, Precision p) {
         return ops::mul_add(x, std::move(y), g, p).to(at::kBFloat16).to(at::kFloat);
       };
     }},
    {"RMS norm rounded before the weight", "diffusers-skyreels-v2-df.bf16", "blocks.0.self_attn.norm_q",
     Precision::recorded,
     [](WanOps& ops) {
       ops.rms_norm = [](auto& x, auto& w, double eps, RmsForm, Precision p) {
         return ops::rms_norm(x, w, eps, RmsForm::round_first, p);
       };
     }},
};

bool differs(const at::Tensor& r, const at::Tensor& g, Precision precision) {
  if (r.sizes() != g.sizes() || r.scalar_type() != g.scalar_type()) return true;
  const auto a = reals(r).to(at::kDouble), b = reals(g).to(at::kDouble);
  if (precision == Precision::recorded) return !at::equal(a, b);
  return !((a - b).norm().item<double>() <= 1e-10 * a.norm().item<double>());
}

}  // namespace

TEST_CASE("wan: a one-line fault shows first at the op that has it") {
  for (const auto& fault : kWanFaults) {
    CAPTURE(fault.name);
    const WanCase c(fault.dump);
    const auto reference = reference_values(c, fault.precision);
    WanOps ops;
    fault.put(ops);
    std::string first = "none";
    std::map<std::string, at::Tensor> got;
    try {
      model_values(c, fault.precision, &reference, ops, &got);
    } catch (const std::exception&) {
      // a fault may change a shape so that a later op cannot run; what came before has been seen
    }
    for (const auto& pair : c.pairs)
      if (const auto seen = got.find(pair.candidate); seen != got.end())
        if (differs(reference.at(pair.candidate), seen->second, fault.precision)) {
          first = pair.candidate;
          break;
        }
    CHECK(first == fault.first);
  }
}

TEST_CASE("wan: ops put in unchanged change nothing") {
  const WanCase c("skyreels-v2-t2v.bf16");
  WanOps ops;
  ops.cast = [](WanCast, const at::Tensor& x, at::ScalarType to) { return x.to(to); };
  ops.gelu = [](at::Tensor x, GeluForm form) { return at::gelu(x, form == GeluForm::tanh ? "tanh" : "none"); };
  const auto plain = model_values(c, Precision::recorded, nullptr),
             other = model_values(c, Precision::recorded, nullptr, ops);
  for (const auto& [point, value] : plain) CHECK(at::equal(reals(value), reals(other.at(point))));
}

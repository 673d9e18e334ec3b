// What is fast where nobody looks in between computes what the ops one by one do: Wan's transformer with passes in one,
// and its autoencoder with padding left to the convolution.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <limits>

#include "models/wan_vae/model.hpp"
#include "models/wan_vae/ported.hpp"
#include "wan_dumps.hpp"

using namespace parity;
using namespace parity::test;

namespace {

at::Tensor output(const Dump& dump, Precision precision, WanOps ops) {
  NoProbe off;
  return port_wan(dump, precision, std::move(ops))->forward(0, off);
}

double apart(const at::Tensor& got, const at::Tensor& want) {
  const at::Tensor wide = want.to(at::kDouble);
  return ((got.to(at::kDouble) - wide).norm() / wide.norm()).item<double>();
}

// Of the tiny models' results, beside the ops one by one: roundings of the arithmetic, at most a few dozen deep.
double most(Precision precision) {
  return precision == Precision::fp64 ? 1e-13 : precision == Precision::fp32 ? 1e-5 : 3e-2;
}

constexpr Precision kPrecisions[] = {Precision::fp64, Precision::fp32, Precision::recorded};

}  // namespace

TEST_CASE("wan fast: passes in one give what the ops one by one do, in every cast placement") {
  for (const std::string& name : wan_dumps()) {
    const Dump dump = open_dump(name);
    for (const Precision precision : kPrecisions) {
      CAPTURE(fmt::format("{}, precision {}", name, static_cast<int>(precision)));
      CHECK(apart(output(dump, precision, fast_wan_ops()), output(dump, precision, {})) < most(precision));
    }
  }
}

TEST_CASE("wan fast: diffusers' placement takes the passes, and a fault in each shows") {
  const Dump dump = open_dump("diffusers-skyreels-v2-i2v.bf16");
  const at::Tensor want = output(dump, Precision::fp64, {});
  const auto error = [&](const WanOps& ops) { return apart(output(dump, Precision::fp64, ops), want); };
  WanOps modulate = fast_wan_ops(), gate = fast_wan_ops(), turn = fast_wan_ops();
  modulate.norm_modulate = [](const auto& x, const auto& gain, const auto& shift, double) {
    return ops::norm_modulate(x, gain, shift, 1e-3);
  };
  gate.gate_residual = [](const auto& x, at::Tensor y, const auto& g) { return ops::gate_residual(x, y, 1 + g); };
  turn.norm_turn = [](at::Tensor x, const auto& weight, double eps, const RopeTurn& t) {
    return ops::norm_turn(std::move(x), weight, eps, {t.turn, t.cos, t.sin.defined() ? -t.sin : t.sin});
  };
  for (const WanOps& faulty : {modulate, gate, turn}) CHECK(error(faulty) > 1e-6);
}

TEST_CASE("wan fast: a probe sees every op, whatever the ops") {
  const WanCase c("diffusers-wan-t2v.bf16");
  CHECK(model_values(c, Precision::recorded, nullptr, fast_wan_ops()).size() ==
        model_values(c, Precision::recorded, nullptr).size());
}

TEST_CASE("wan fast: the autoencoder without padding copies decodes to the same") {
  const Dump dump = open_dump("diffusers-wan-vae-decode.fp32");
  NoProbe off;
  for (const Precision precision : kPrecisions) {
    const at::Tensor want = port_wan_vae(dump, precision, WanVaeOps{})->forward(0, off);
    CHECK(apart(port_wan_vae(dump, precision, fast_wan_vae_ops())->forward(0, off), want) <
          most(precision == Precision::recorded ? Precision::fp32 : precision));
  }
  WanVaeOps faulty = fast_wan_vae_ops();
  faulty.causal_conv = [](const auto& x, const auto& w, const auto& b, const auto&, int64_t stride) {
    return ops::causal_conv3d_at_once(x, w, b, {}, stride);  // what was before is forgotten
  };
  const auto decoded = [&](const WanVaeOps& ops) { return port_wan_vae(dump, Precision::fp64, ops)->forward(0, off); };
  CHECK(apart(decoded(faulty), decoded({})) > 1e-6);
}

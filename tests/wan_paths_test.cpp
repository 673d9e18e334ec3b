// Each cast placement against the recordings of the real models: bit for bit in the recorded dtypes, 1e-12 in fp64.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "models/wan/kinds.hpp"
#include "wan_dumps.hpp"

using namespace parity;
using namespace parity::test;

namespace {

double equal_share(const at::Tensor& a, const at::Tensor& b) {
  return at::eq(reals(a), reals(b)).to(at::kDouble).mean().item<double>();
}

double relative_error(const at::Tensor& reference, const at::Tensor& candidate) {
  const auto r = reals(reference).to(at::kDouble), c = reals(candidate).to(at::kDouble);
  return (c - r).norm().item<double>() / std::max(r.norm().item<double>(), 1e-300);
}

// Elements that must be bitwise equal; the same LibTorch on the same kind of CPU gives all. GEMM and attention kernels
// choose by CPU, so a machine other than the recording's may round a few elements the other way.
double wanted_share(std::string_view kind) {
  if (kind == "attention") return 0.98;
  return kind == "linear" || kind == "conv" ? 0.999 : 1.0;
}

void check_bitwise(const std::string& name, bool forced) {
  const WanCase c(name);
  const auto reference = reference_values(c, Precision::recorded);
  const auto got = model_values(c, Precision::recorded, forced ? &reference : nullptr);
  for (const auto& pair : c.pairs) {
    CAPTURE(name);
    CAPTURE(c.program.boundaries[pair.boundary].path);
    CAPTURE(pair.candidate);
    const auto &r = reference.at(pair.candidate), &g = got.at(pair.candidate);
    REQUIRE(r.sizes() == g.sizes());
    CHECK(dtype_name(r.scalar_type()) == dtype_name(g.scalar_type()));
    CHECK(equal_share(r, g) >= (forced ? wanted_share(wan_kind(pair.candidate)) : 1.0));
  }
}

}  // namespace

TEST_CASE("wan: maps are exact, and every point of the model has its counterpart in every recording") {
  for (const auto& name : wan_dumps()) {
    const WanCase c(name);  // fails for a rule whose reference or candidate does not occur
    CAPTURE(name);
    CHECK(c.pairs.size() > 60);
    CHECK(fmt::format("{}", fmt::join(c.unpaired, " ")) == "");
  }
}

TEST_CASE("wan: teacher-forced, every op is bitwise what was recorded") {
  for (const auto& name : wan_dumps()) check_bitwise(name, true);
}

TEST_CASE("wan: run free, every op is bitwise what was recorded") {
  for (const auto& name : wan_dumps()) check_bitwise(name, false);
}

TEST_CASE("wan: in fp64 every op is the replayed program's") {
  for (const auto& name : wan_dumps())
    for (const bool forced : {true, false}) {
      const WanCase c(name);
      const auto oracle = reference_values(c, Precision::fp64);
      const auto got = model_values(c, Precision::fp64, forced ? &oracle : nullptr);
      for (const auto& pair : c.pairs) {
        CAPTURE(name);
        CAPTURE(pair.candidate);
        REQUIRE(oracle.at(pair.candidate).sizes() == got.at(pair.candidate).sizes());
        CHECK(dtype_name(c10::toRealValueType(got.at(pair.candidate).scalar_type())) == "float64");
        CHECK(relative_error(oracle.at(pair.candidate), got.at(pair.candidate)) <= 1e-12);
      }
    }
}

TEST_CASE("wan: in fp32 a half-width recording's model rounds nothing to half width") {
  for (const auto& name : wan_dumps()) {
    if (!name.ends_with(".bf16")) continue;
    const WanCase c(name);
    const auto reference = reference_values(c, Precision::fp32);
    const auto got = model_values(c, Precision::fp32, &reference);
    for (const auto& pair : c.pairs) {
      CAPTURE(name);
      CAPTURE(pair.candidate);
      CHECK(dtype_name(got.at(pair.candidate).scalar_type()) == dtype_name(reference.at(pair.candidate).scalar_type()));
      CHECK(relative_error(reference.at(pair.candidate), got.at(pair.candidate)) <= 1e-6);
    }
  }
}

TEST_CASE("wan: a computed rope table is the recorded one, bit for bit") {
  for (const auto& name : wan_dumps()) {
    const auto dump = open_dump(name);
    const auto& path = wan_dtype_path_of(dump);
    const auto& config = dump.provenance().at("config");
    const bool real = path.rope == RopeForm::real;
    const int64_t length = config.at(real ? "rope_max_seq_len" : "rope_len");
    const int64_t d = real ? config.at("attention_head_dim").get<int64_t>()
                           : config.at("dim").get<int64_t>() / config.at("num_heads").get<int64_t>();
    const auto table = ops::rope_table(length, d, path.rope);
    CAPTURE(name);
    if (real) {
      CHECK(at::equal(table.cos, dump.weight("rope.freqs_cos")));
      CHECK(at::equal(table.sin, dump.weight("rope.freqs_sin")));
    } else {
      CHECK(at::equal(at::view_as_real(table.freqs), at::view_as_real(dump.weight("freqs"))));
    }
  }
}

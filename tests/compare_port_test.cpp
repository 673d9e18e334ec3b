// The judge of ports: recorded pairs with known answers.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>

#include "jobs/port_job.hpp"
#include "jobs/rows.hpp"
#include "jobs/sides.hpp"
#include "pair/order.hpp"
#include "program_file.hpp"
#include "test_places.hpp"

namespace parity {
namespace {

using testing::diagnosis_of;
using testing::json;
using testing::ProgramFile;
using testing::ref;
namespace fs = std::filesystem;

const fs::path kSuite = fs::path(PARITY_SOURCE_DIR) / "reference_dumps" / "selftest";

Report judged(const std::string& reference, const std::string& candidate, const Thresholds& limits = {}) {
  const Sides sides = open_sides(kSuite / reference, kSuite / candidate, "");
  PortJobOptions options;
  options.limits = limits;
  JobResult result =
      run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, options);
  Report report;
  report.ops = std::move(result.rows);
  return report;
}

void check_red(const std::string& reference, const std::string& candidate, const std::string& path,
               const std::string& fault) {
  CAPTURE(candidate);
  const Report report = judged(reference, candidate);
  const OpResult* first = first_divergence(report);
  REQUIRE(first != nullptr);
  CHECK(first->path == path);
  CHECK(first->diagnosis.substr(0, fault.size()) == fault);
  CHECK(exit_status(report) == 1);
}

// A recording judged against itself, with one tensor changed on the way.
JobResult with_changed(const std::string& file, const std::string& path,
                       const std::function<at::Tensor(const at::Tensor&)>& change) {
  Sides sides = open_sides(kSuite / file, kSuite / file, "");
  for (CandidateTensor& tensor : sides.candidate.tensors)
    if (tensor.path == path) tensor.load = [load = tensor.load, change] { return change(load()); };
  return run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, {});
}

const OpResult& row_of(const JobResult& result, const std::string& path) {
  for (const OpResult& row : result.rows)
    if (row.path == path) return row;
  throw std::runtime_error("no row " + path);
}

}  // namespace

TEST_CASE("port: benign other kernels pass, in fp32 and in bf16") {
  CHECK(exit_status(judged("gpt2.fp32.h5", "gpt2.fp32.honest.every-kernel-another.h5")) == 0);
  CHECK(exit_status(judged("wan.bf16.h5", "wan.bf16.honest.every-kernel-another.h5")) == 0);
  CHECK(exit_status(judged("gpt2.bf16.h5", "gpt2.bf16.honest.attention-in-the-model-s-dtype.h5")) == 0);
}

TEST_CASE("port: a fault of each family is red at its module, with its name") {
  check_red("gpt2.fp32.h5", "gpt2.fp32.fault.norm-eps.h5", "transformer.h.0.ln_1", "norm eps");
  check_red("wan.bf16.h5", "wan.bf16.fault.modulation-in-bf16.h5", "blocks.0.attn1.to_q", "extra rounding");
  check_red("gpt2.fp32.h5", "gpt2.fp32.fault.attention-scale.h5", "transformer.h.0.attn.c_proj", "attention scale");
  check_red("wan.fp32.h5", "wan.fp32.fault.rope-missing.h5", "blocks.1.attn1.to_out.0", "RoPE missing");
}

TEST_CASE("port: changes that explain all of the difference have their names") {
  check_red("wan.fp32.h5", "wan.fp32.fault.channel-order.h5", "", "channel order");
  check_red("wan-vae.bf16.h5", "wan-vae.bf16.fault.frame-channels.h5", "up_block.upsamplers.0.time_conv",
            "channel order");
  check_red("gpt-oss.fp32.h5", "gpt-oss.fp32.fault.clamp-limit.h5", "model.layers.0.mlp.experts", "clamp limit");
  check_red("umt5.fp32.h5", "umt5.fp32.fault.mask-late.h5", "encoder.block.0.layer.0.SelfAttention.o",
            "mask off by one");
  check_red("gpt2.fp32.h5", "gpt2.fp32.fault.residual-of-norm.h5", "transformer.h.1.ln_2", "residual missing");
}

TEST_CASE("port: a sum without its first term is not a stale value, nor are another layer's weights") {
  check_red("gpt2.bf16.h5", "gpt2.bf16.fault.no-residual.h5", "transformer.h.1", "residual missing");
  check_red("umt5.fp32.h5", "umt5.fp32.fault.shared-bias.h5",
            "encoder.block.1.layer.0.SelfAttention.relative_attention_bias", "wrong layer's weights");
}

TEST_CASE("port: heads of another order are permuted heads, whatever lies between the split and attention") {
  at::manual_seed(1);
  const std::string sdpa = "aten::_scaled_dot_product_flash_attention_for_cpu";
  const auto run = [](const at::Tensor& q, const at::Tensor& k, const at::Tensor& v) {
    const auto [result, sums] = at::_scaled_dot_product_flash_attention_for_cpu(q, k, v);
    return std::vector<at::Tensor>{result, sums};
  };
  SUBCASE("width before heads, with a norm's gain and a permutation on the way") {
    ProgramFile file("heads.h5");
    const at::Tensor gain = at::rand({8}) + .5;
    json read = json::array();
    std::vector<at::Tensor> right, wrong;
    for (int i = 0; i < 3; ++i) {
      const at::Tensor x = at::randn({1, 6, 16});
      const at::Tensor heads = x.view({1, 6, 2, 8}) * gain, other = x.view({1, 6, 8, 2}).transpose(2, 3) * gain;
      const int64_t view =
          file.op("aten::view", {ref(file.leaf(x)), json{1, 6, 2, 8}}, {x.view({1, 6, 2, 8})}, {}, {{"view", true}});
      const int64_t scaled =
          file.op("aten::mul.Tensor", {ref(view), ref(file.leaf(gain))}, {heads}, {}, {{"store", false}});
      right.push_back(heads.permute({0, 2, 1, 3}));
      wrong.push_back(other.permute({0, 2, 1, 3}).contiguous());
      read.push_back(
          ref(file.op("aten::permute", {ref(scaled), json{0, 2, 1, 3}}, {right.back()}, {}, {{"view", true}})));
    }
    file.op(sdpa, read, run(right[0], right[1], right[2]), json::object(), {{"store", true}});
    CHECK(diagnosis_of(file, run(wrong[0], wrong[1], wrong[2])[0]).starts_with("permuted heads"));
  }
  SUBCASE("fewer key heads tiled, where the kernel repeats them itself") {
    ProgramFile file("tiled.h5");
    const at::Tensor q = at::randn({1, 4, 6, 8}), k = at::randn({1, 2, 6, 8}), v = at::randn({1, 2, 6, 8});
    json read = json::array();
    for (const at::Tensor& t : {q, k, v}) read.push_back(ref(file.leaf(t)));
    file.op(sdpa, read, run(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)));
    const at::Tensor tiled = run(q, k.repeat({1, 2, 1, 1}), v.repeat({1, 2, 1, 1}))[0];
    CHECK(diagnosis_of(file, tiled).starts_with("permuted heads"));
  }
}

TEST_CASE("port: exchanged halves are shift and scale where they modulate, else the order of channels") {
  at::manual_seed(2);
  const at::Tensor angles = at::rand({2, 8}) * 6, x = at::randn({2, 16});
  const auto exchanged = [](const at::Tensor& t) { return at::cat({t.narrow(1, 8, 8), t.narrow(1, 0, 8)}, 1); };
  SUBCASE("a sinusoid") {
    ProgramFile file("sinusoid.h5");
    const int64_t a = file.leaf(angles);
    const int64_t sines = file.op("aten::sin", {ref(a)}, {angles.sin()}, {}, {{"store", false}});
    const int64_t cosines = file.op("aten::cos", {ref(a)}, {angles.cos()}, {}, {{"store", false}});
    const at::Tensor both = at::cat({angles.sin(), angles.cos()}, 1);
    file.op("aten::cat", {json{ref(sines), ref(cosines)}, 1}, {both});
    CHECK(diagnosis_of(file, exchanged(both)).starts_with("channel order"));
  }
  SUBCASE("a modulation") {
    ProgramFile file("modulation.h5");
    const at::Tensor y = at::randn({2, 8});
    const auto modulated = [&](const at::Tensor& m) { return y * (1 + m.narrow(1, 8, 8)) + m.narrow(1, 0, 8); };
    const int64_t m = file.leaf(x), normed = file.leaf(y);
    const int64_t shift = file.op("aten::slice.Tensor", {ref(m), 1, 0, 8}, {x.narrow(1, 0, 8)}, {}, {{"view", true}});
    const int64_t scale = file.op("aten::slice.Tensor", {ref(m), 1, 8, 16}, {x.narrow(1, 8, 8)}, {}, {{"view", true}});
    const int64_t one = file.op("aten::add.Tensor", {ref(scale), 1}, {x.narrow(1, 8, 8) + 1}, {}, {{"store", false}});
    const int64_t scaled =
        file.op("aten::mul.Tensor", {ref(normed), ref(one)}, {y * (1 + x.narrow(1, 8, 8))}, {}, {{"store", false}});
    file.op("aten::add.Tensor", {ref(scaled), ref(shift)}, {modulated(x)});
    CHECK(diagnosis_of(file, modulated(exchanged(x))).starts_with("shift and scale swapped"));
  }
}

TEST_CASE("port: a counterpart is made after what it is computed from and before what is computed from it") {
  const Dump dump(kSuite / "qwen3.fp32.h5");
  const Program program = load_program(dump);
  const std::string attention = "model.layers.0.self_attn";
  const size_t key = program.find(attention + ".k_proj").value(),
               product = program.find(attention + ".k_proj/mm.0").value(),
               norm = program.find("model.layers.0.input_layernorm").value();
  std::vector<std::pair<size_t, size_t>> known;
  for (size_t b = 0; b < program.boundaries.size(); ++b)
    if (b != product && program.boundaries[b].path.find('/') == std::string::npos) known.emplace_back(b, 10 * b);
  const PairingOrder order(program, known);
  CHECK(order.possible(product, 10 * key - 1));
  CHECK_FALSE(order.possible(product, 10 * key + 1));
  CHECK_FALSE(order.possible(product, 10 * norm - 1));
  CHECK(order.known_by_another_name(product));
  CHECK_FALSE(order.known_by_another_name(program.find(attention + "/cat.0").value()));
  // names in the order of the alphabet say nothing
  std::mt19937 generator(3);
  std::vector<size_t> places(known.size());
  std::iota(places.begin(), places.end(), 0);
  std::shuffle(places.begin(), places.end(), generator);
  for (size_t i = 0; i < known.size(); ++i) known[i].second = places[i];
  CHECK(PairingOrder(program, known).possible(product, 10 * key + 1));
}

TEST_CASE("port: channels last under the same name are read so, two axes exchanged are a mistake that says its rule") {
  Sides sides =
      open_sides(kSuite / ".." / "diffusers-wan-t2v.fp32.h5", kSuite / ".." / "diffusers-wan-t2v.fp32.h5", "");
  const Dump& dump = *sides.reference.dump;
  const auto judge = [&](const std::string& path, at::IntArrayRef order) {
    std::vector<CandidateTensor> tensors = sides.candidate.tensors;
    for (CandidateTensor& tensor : tensors)
      if (tensor.path == path) {
        tensor.load = [load = tensor.load, axes = order.vec()] { return load().permute(axes).contiguous(); };
        tensor.shape = tensor.load().sizes().vec();
      }
    const Program& program = sides.reference.program;
    const PortPairing pairing = pair_recordings(dump, program, tensors, &program, nullptr);
    return std::pair(row_of(run_port_job(dump, program, tensors, pairing, {}), path), pairing.notes);
  };
  const auto [conv, notes] = judge("patch_embedding", {0, 2, 3, 4, 1});
  CHECK(conv.verdict == Verdict::pass);
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].find("patch_embedding = patch_embedding perm(0,4,1,2,3)") != std::string::npos);
  const OpResult linear = judge("blocks.0.attn1.to_q", {0, 2, 1}).first;
  CHECK(linear.verdict == Verdict::shape);
  CHECK(linear.diagnosis.find("blocks.0.attn1.to_q = blocks.0.attn1.to_q perm(0,2,1)") != std::string::npos);
}

TEST_CASE("port: a declared rounding passes, and says so") {
  Thresholds limits;
  limits.accepted = {"blocks.*"};
  const auto judge = [&] { return judged("wan.bf16.h5", "wan.bf16.fault.modulation-in-bf16.h5", limits); };
  CHECK(exit_status(judge()) == 1);  // the port has nothing of block 1: its rounding shows in the model's result
  limits.accepted.emplace_back("");
  const Report report = judge();
  CHECK(exit_status(report) == 0);
  const auto says_so = [](const Report& of) {
    return std::any_of(of.ops.begin(), of.ops.end(),
                       [](const OpResult& row) { return row.diagnosis.starts_with("declared"); });
  };
  CHECK(says_so(report));
  limits.accepted = {"extra rounding*"};  // by the name that the diagnosis begins with
  const Report by_name = judge();
  CHECK(exit_status(by_name) == 0);
  CHECK(says_so(by_name));
}

TEST_CASE("port: NaN, another shape and another dtype class are structure") {
  const std::string file = "gpt2.fp32.h5", path = "transformer.h.0.ln_1";
  const auto nan = with_changed(file, path, [](const at::Tensor& t) {
    at::Tensor changed = t.clone();
    changed.view(-1)[3] = NAN;
    return changed;
  });
  CHECK(row_of(nan, path).verdict == Verdict::fail);
  CHECK(row_of(nan, path).diagnosis.starts_with("NaN origin"));
  // what follows computes with the NaN, as the port did: its own error is none
  CHECK(row_of(nan, "transformer.h.0.mlp.c_fc").verdict != Verdict::fail);
  const auto shape = with_changed(file, path, [](const at::Tensor& t) { return t.narrow(-1, 0, 3); });
  CHECK(row_of(shape, path).verdict == Verdict::shape);
  const auto whole = with_changed(file, path, [](const at::Tensor& t) { return t.to(at::kLong); });
  CHECK(row_of(whole, path).verdict == Verdict::shape);
  CHECK(row_of(whole, path).gate == Gate::structure);
}

TEST_CASE("port: a gain far below a rounding is found by its direction") {
  const std::string path = "transformer.h.1.mlp.c_fc";
  const auto clean = with_changed("gpt2.fp32.h5", path, [](const at::Tensor& t) { return t; });
  CHECK(row_of(clean, path).verdict == Verdict::pass);
  const auto scaled = with_changed("gpt2.fp32.h5", path, [](const at::Tensor& t) { return t * (1 + 1e-5); });
  CHECK(row_of(scaled, path).verdict == Verdict::fail);
  CHECK(row_of(scaled, path).diagnosis.find("gain") != std::string::npos);
  // half of what differs: some size of it always explains a part, and is no name
  const auto other =
      with_changed("gpt2.fp32.h5", path, [](const at::Tensor& t) { return t * .5 + t.roll(1, -1) * .4; });
  CHECK(row_of(other, path).verdict == Verdict::fail);
  CHECK(row_of(other, path).diagnosis.find("gain") == std::string::npos);
}

TEST_CASE("port: a port in fp64 is judged by its logic") {
  const std::string path = "transformer.h.0.ln_1";
  const auto narrow =
      with_changed("gpt2.fp32.h5", path, [](const at::Tensor& t) { return t.to(at::kDouble) * (1 + 1e-11); });
  CHECK(row_of(narrow, path).verdict == Verdict::fail);  // fp32 values are 1e-8 away from fp64
  CHECK(row_of(narrow, path).gate == Gate::logic);
}

}  // namespace parity

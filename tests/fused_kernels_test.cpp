// What fused kernels leave unrounded is another valid algorithm; what none of them leaves unrounded is not.
#include <doctest/doctest.h>

#include "jobs/port_job.hpp"
#include "pair/port_pairing.hpp"
#include "program_file.hpp"

namespace parity {
namespace {

using testing::ProgramFile;
using testing::ref;

// The recording's last value alone, as a port has it that computed `value`.
Report judged_at_the_end(ProgramFile& file, const at::Tensor& value) {
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  std::vector<CandidateTensor> tensors = tensors_of(dump, program);
  REQUIRE(!tensors.empty());
  tensors.erase(tensors.begin(), tensors.end() - 1);
  tensors.back().load = [value] { return value; };
  Report report;
  report.ops = run_port_job(dump, program, tensors, pair_by_name(program, tensors, &program, nullptr), {}).rows;
  return report;
}

std::string failure(const Report& report) {
  for (const OpResult& row : report.ops)
    if (row.verdict == Verdict::fail) return row.diagnosis;
  return "";
}

at::Tensor half(const at::Tensor& t) { return t.to(at::kBFloat16); }
at::Tensor wide(const at::Tensor& t) { return t.to(at::kFloat); }

struct Layer {  // x: (2, 64, 96), weight: (2, 96, 80)
  at::Tensor x, weight;

  Layer() {
    at::manual_seed(11);
    x = half(at::randn({2, 64, 96})), weight = half(at::randn({2, 96, 80}));
  }
  at::Tensor product() const { return wide(x).bmm(wide(weight)); }

  // bmm, then add: two roundings, as LibTorch's linear does for inputs that are not contiguous.
  Report judged(const at::Tensor& addend, const at::Tensor& candidate) const {
    ProgramFile file("linear.h5");
    const int64_t in = file.leaf(x), by = file.leaf(weight), add = file.leaf(addend);
    const int64_t product = file.op("aten::bmm", {ref(in), ref(by)}, {x.bmm(weight)}, {}, {{"store", false}});
    file.op("aten::add.Tensor", {ref(product), ref(add)}, {x.bmm(weight) + addend});
    return judged_at_the_end(file, candidate);
  }
};

}  // namespace

TEST_CASE("fused kernels: a bias may be added before the product is rounded, anything else may not") {
  const Layer layer;
  const at::Tensor bias = half(at::randn({80})), residual = half(at::randn({2, 64, 80}));
  CHECK(exit_status(layer.judged(bias, half(layer.product() + wide(bias)))) == 0);
  const Report red = layer.judged(residual, half(layer.product() + wide(residual)));
  CHECK(exit_status(red) == 1);
  CHECK(testing::contains(failure(red), "missing rounding"));
}

TEST_CASE("fused kernels: a product rounded before the bias is added is an extra rounding of addmm") {
  at::manual_seed(12);
  const at::Tensor x = half(at::randn({128, 96})), weight = half(at::randn({96, 80})), bias = half(at::randn({80}));
  ProgramFile file("addmm.h5");
  const int64_t add = file.leaf(bias), in = file.leaf(x), by = file.leaf(weight);
  file.op("aten::addmm", {ref(add), ref(in), ref(by)}, {at::addmm(bias, x, weight)});
  const Report red = judged_at_the_end(file, x.mm(weight) + bias);
  CHECK(exit_status(red) == 1);
  CHECK(testing::contains(failure(red), "extra rounding"));
}

TEST_CASE("fused kernels: attention may keep scores and probabilities wide, not the scores alone") {
  at::manual_seed(13);
  const at::Tensor q = half(at::randn({6, 40, 32})), k = half(at::randn({6, 32, 40})), v = half(at::randn({6, 40, 24}));
  const auto judged = [&](const at::Tensor& candidate) {
    ProgramFile file("attention.h5");
    const int64_t of_q = file.leaf(q), of_k = file.leaf(k), of_v = file.leaf(v);
    const at::Tensor scores = q.bmm(k), p = scores.softmax(-1);
    const int64_t s = file.op("aten::bmm", {ref(of_q), ref(of_k)}, {scores}, {}, {{"store", false}});
    const int64_t weights = file.op("aten::_softmax", {ref(s), -1, false}, {p}, {}, {{"store", false}});
    file.op("aten::bmm", {ref(weights), ref(of_v)}, {p.bmm(v)});
    return judged_at_the_end(file, candidate);
  };
  const at::Tensor p = wide(q).bmm(wide(k)).softmax(-1);
  CHECK(exit_status(judged(half(p.bmm(wide(v))))) == 0);
  const Report red = judged(half(p).bmm(v));
  CHECK(exit_status(red) == 1);
  CHECK(testing::contains(failure(red), "missing rounding"));
}

TEST_CASE("fused kernels: attention that LibTorch takes in steps in fp32 may be eager in its operands' dtype") {
  at::manual_seed(14);
  const at::Tensor q = half(at::randn({6, 40, 32})), k = half(at::randn({6, 32, 40})), v = half(at::randn({6, 40, 24}));
  const double root = std::pow(32, -.25);
  const auto judged = [&](const at::Tensor& candidate) {
    ProgramFile file("steps.h5");
    const auto copied = [&](int64_t of, const at::Tensor& value, const char* to) {
      return file.op("aten::_to_copy", {ref(of)}, {value}, {{"dtype", {{"dtype", to}}}}, {{"store", false}});
    };
    const auto widened = [&](const at::Tensor& t) { return copied(file.leaf(t), wide(t), "float32"); };
    const auto scaled = [&](const at::Tensor& t) {
      return file.op("aten::mul.Scalar", {ref(widened(t)), root}, {wide(t) * root}, {}, {{"store", false}});
    };
    const at::Tensor scores = (wide(q) * root).bmm(wide(k) * root), p = scores.softmax(-1), out = p.bmm(wide(v));
    const int64_t of_q = scaled(q), of_k = scaled(k);
    const int64_t s = file.op("aten::bmm", {ref(of_q), ref(of_k)}, {scores}, {}, {{"store", false}});
    const int64_t weights = file.op("aten::_safe_softmax", {ref(s), -1}, {p}, {}, {{"store", false}});
    copied(weights, half(p), "bfloat16");
    const int64_t product = file.op("aten::bmm", {ref(weights), ref(widened(v))}, {out}, {}, {{"store", false}});
    file.op("aten::_to_copy", {ref(product)}, {half(out)}, {{"dtype", {{"dtype", "bfloat16"}}}});
    return judged_at_the_end(file, candidate);
  };
  const auto eager = [&](double scale) { return half(wide(q.bmm(k) * scale).softmax(-1)).bmm(v); };
  const Report green = judged(eager(root * root));
  CAPTURE(failure(green));
  CHECK(exit_status(green) == 0);
  CHECK(exit_status(judged(eager(1.05 * root * root))) == 1);
}

}  // namespace parity

// A selection (which tokens an expert gets) that the candidate's own scores decide otherwise is not its error; a wrong
// selection is.
#include <doctest/doctest.h>

#include "jobs/port_job.hpp"
#include "pair/port_pairing.hpp"
#include "program_file.hpp"

namespace parity {
namespace {

using testing::json;
using testing::ProgramFile;
using testing::ref;

// scores = -s; x at the rows where scores > 0; squared.
struct Routed {
  at::Tensor s, x;

  Routed() {
    at::manual_seed(21);
    s = at::randn({40}), x = at::randn({40, 6});
    s[7] = 1e-8, s[8] = -1e-8;  // ties: 7 is not selected, 8 is
  }
  at::Tensor rows(const at::Tensor& scores) const { return scores.gt(0).nonzero().select(1, 0); }
  at::Tensor selected(const at::Tensor& scores) const { return x.index_select(0, rows(scores)); }

  Report judged(const at::Tensor& scores, const at::Tensor& chosen) const {
    ProgramFile file("routed.h5");
    const at::Tensor own = -s, mask = own.gt(0), found = mask.nonzero(), y = selected(own);
    const int64_t is = file.leaf(s), ix = file.leaf(x);
    const int64_t t = file.op("aten::neg", {ref(is)}, {own});
    const int64_t m = file.op("aten::gt.Scalar", {ref(t), 0}, {mask});
    const int64_t n = file.op("aten::nonzero", {ref(m)}, {found}, json::object(), {{"opaque", "data-dependent"}});
    const int64_t i =
        file.op("aten::select.int", {ref(n), 1, 0}, {found.select(1, 0)}, json::object(), {{"view", true}});
    const int64_t c = file.op("aten::index_select", {ref(ix), 0, ref(i)}, {y});
    file.op("aten::mul.Tensor", {ref(c), ref(c)}, {y * y});
    const Dump dump = file.dump();
    const Program program = load_program(dump);
    std::vector<CandidateTensor> tensors;
    for (CandidateTensor& tensor : tensors_of(dump, program)) {
      const auto is_op = [&](const char* op) { return tensor.path.find(op) != std::string::npos; };
      const at::Tensor value = is_op("neg") ? scores : is_op("index_select") ? chosen : chosen * chosen;
      if (!is_op("neg") && !is_op("index_select") && !is_op("mul")) continue;  // a port records no indices
      tensor.shape = value.sizes().vec();
      tensor.load = [value] { return value; };
      tensors.push_back(tensor);
    }
    REQUIRE(tensors.size() == 3);
    Report report;
    report.ops = run_port_job(dump, program, tensors, pair_by_name(program, tensors, &program, nullptr), {}).rows;
    return report;
  }
};

at::Tensor with(const at::Tensor& scores, std::initializer_list<std::pair<int, double>> changes) {
  at::Tensor out = scores.clone();
  for (const auto& [at, value] : changes) out[at] = value;
  return out;
}

}  // namespace

TEST_CASE("other selections: a tie that the candidate's scores decide otherwise is inconclusive, and says so") {
  const Routed r;
  const at::Tensor own = -r.s;
  CHECK(exit_status(r.judged(own, r.selected(own))) == 0);
  const at::Tensor one_more = with(own, {{7, 1e-12}}), another = with(own, {{7, 1e-12}, {8, -1e-12}});
  for (const at::Tensor& scores : {one_more, another}) {
    const Report report = r.judged(scores, r.selected(scores));
    CHECK(exit_status(report) == 3);
    for (const OpResult& row : report.ops) {
      CAPTURE(row.path);
      if (row.path.find("index_select") == std::string::npos) continue;
      CHECK(row.verdict == Verdict::inconclusive);
      CHECK(row.diagnosis.find("nonzero.0 selects") != std::string::npos);
    }
  }
}

TEST_CASE("other selections: rows that the candidate's scores do not ask for fail as ever") {
  const Routed r;
  const at::Tensor own = -r.s, one_more = with(own, {{7, 1e-12}}), two_more = with(own, {{7, 1.}, {9, 1.}, {10, 1.}});
  const Report shape = r.judged(own, r.selected(one_more));  // scores as recorded, a row too many
  CHECK(first_divergence(shape)->verdict == Verdict::shape);
  CHECK(exit_status(r.judged(own, r.selected(own).flip({0}))) == 1);
  if (r.rows(two_more).size(0) != r.rows(one_more).size(0))  // a tie decided otherwise, and rows that neither asks for
    CHECK(exit_status(r.judged(one_more, r.selected(two_more))) == 1);
}

// x at the rows where scores > 0, and of these the rows whose first number is positive.
TEST_CASE("other selections: what a mask takes of rows selected otherwise may be fewer, and no wider") {
  const Routed r;
  const at::Tensor own = -r.s, scores = with(own, {{7, 1.}, {9, 1.}, {10, 1.}, {11, 1.}, {12, 1.}, {13, 1.}});
  const auto taken = [](const at::Tensor& y) { return y.index({y.select(1, 0).gt(0)}); };
  const auto judged = [&](const at::Tensor& last) {
    ProgramFile file("masked.h5");
    const at::Tensor mask = own.gt(0), found = mask.nonzero(), y = r.selected(own), positive = y.select(1, 0).gt(0);
    const int64_t ix = file.leaf(r.x), t = file.op("aten::neg", {ref(file.leaf(r.s))}, {own});
    const int64_t m = file.op("aten::gt.Scalar", {ref(t), 0}, {mask});
    const int64_t n = file.op("aten::nonzero", {ref(m)}, {found}, json::object(), {{"opaque", "data-dependent"}});
    const int64_t i =
        file.op("aten::select.int", {ref(n), 1, 0}, {found.select(1, 0)}, json::object(), {{"view", true}});
    const int64_t c = file.op("aten::index_select", {ref(ix), 0, ref(i)}, {y});
    const int64_t f = file.op("aten::select.int", {ref(c), 1, 0}, {y.select(1, 0)}, json::object(), {{"view", true}});
    const int64_t p = file.op("aten::gt.Scalar", {ref(f), 0}, {positive});
    file.op("aten::index.Tensor", {ref(c), json::array({ref(p)})}, {taken(y)});
    const Dump dump = file.dump();
    const Program program = load_program(dump);
    std::vector<CandidateTensor> tensors = tensors_of(dump, program);
    std::erase_if(tensors, [](const CandidateTensor& tensor) {
      return tensor.path.find("gt") != std::string::npos || tensor.path.find("nonzero") != std::string::npos;
    });
    for (CandidateTensor& tensor : tensors) {
      const auto is_op = [&](const char* op) { return tensor.path.find(op) != std::string::npos; };
      const at::Tensor value = is_op("neg") ? scores : is_op("index_select") ? r.selected(scores) : last;
      tensor.shape = value.sizes().vec(), tensor.load = [value] { return value; };
    }
    REQUIRE(tensors.size() == 3);
    return run_port_job(dump, program, tensors, pair_by_name(program, tensors, &program, nullptr), {}).rows.back();
  };
  const at::Tensor last = taken(r.selected(scores));
  REQUIRE(last.size(0) - taken(r.selected(own)).size(0) != r.rows(scores).size(0) - r.rows(own).size(0));
  CHECK(judged(last).verdict == Verdict::inconclusive);
  CHECK(judged(last.narrow(1, 0, 5)).verdict == Verdict::shape);
}

// The 16 best of 40 scores, best first, and the rows of x there. Ranks 5 and 6 are equal, and so are 10 to 12.
struct Ranked {
  at::Tensor s, x;

  Ranked() {
    at::manual_seed(22);
    s = at::randperm(40).to(at::kFloat), x = at::randn({40, 6});
    s.masked_fill_(s.eq(33), 34), s.masked_fill_(s.eq(28).logical_or(s.eq(27)), 29);
  }
  at::Tensor best() const { return std::get<1>(s.topk(16)); }

  OpResult judged(const at::Tensor& taken) const {
    ProgramFile file("ranked.h5");
    const auto [values, indices] = s.topk(16);
    const int64_t is = file.leaf(s), ix = file.leaf(x);
    const int64_t t = file.op("aten::topk", {ref(is), 16}, {values, indices});
    file.op("aten::index_select", {ref(ix), 0, ref(t + 1)}, {x.index_select(0, indices)});
    const Dump dump = file.dump();
    const Program program = load_program(dump);
    std::vector<CandidateTensor> tensors = tensors_of(dump, program);
    std::erase_if(tensors, [](const CandidateTensor& t) { return t.path.find("index_select") == std::string::npos; });
    REQUIRE(tensors.size() == 1);
    tensors[0].load = [&] { return x.index_select(0, taken); };
    return run_port_job(dump, program, tensors, pair_by_name(program, tensors, &program, nullptr), {}).rows.at(0);
  }
};

TEST_CASE("other selections: equal scores may come in another order, others not") {
  const Ranked ranked;
  const auto exchanged = [&](int64_t a, int64_t b) {
    at::Tensor taken = ranked.best().clone();
    taken[a] = ranked.best()[b], taken[b] = ranked.best()[a];
    return taken;
  };
  REQUIRE(ranked.s.index_select(0, ranked.best())[5].item<float>() ==
          ranked.s.index_select(0, ranked.best())[6].item<float>());
  CHECK(ranked.judged(ranked.best()).verdict == Verdict::pass);
  CHECK(ranked.judged(exchanged(5, 6)).verdict != Verdict::fail);
  CHECK(ranked.judged(exchanged(10, 12)).verdict != Verdict::fail);
  CHECK(ranked.judged(exchanged(5, 7)).verdict == Verdict::fail);
  CHECK(ranked.judged(exchanged(2, 3)).verdict == Verdict::fail);
  CHECK(ranked.judged(ranked.best().flip({0})).verdict == Verdict::fail);
}

}  // namespace parity

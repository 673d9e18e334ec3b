// extract with a port where what enters does not lie densely in memory: the port's values must mean the same tensor,
// wherever they lay.
#include <doctest/doctest.h>

#include "command.hpp"
#include "core/error.hpp"
#include "jobs/repro.hpp"
#include "program_file.hpp"
#include "trace/extract.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

json call_event(int id, const std::string& path, int parent, const json& inputs) {
  return {{"e", "call"},       {"id", id},         {"path", path},       {"call", 0},     {"parent", parent},
          {"class", "Module"}, {"inputs", inputs}, {"literals", json{}}, {"grad", false}, {"autocast", nullptr}};
}

json ret_event(int id, const json& outputs) { return {{"e", "ret"}, {"id", id}, {"outputs", outputs}}; }

// y = 1 x; cut: view = op(y); act: gelu(view). As a convolution, its cropped padding and an activation.
struct Cropped {
  explicit Cropped(const at::Tensor& x, const std::string& op, json args, const at::Tensor& seen) {
    const auto named = [](int64_t id, const at::Tensor& t) {
      json value = value_json(id, t, "");
      value["n"] = "0";
      return value;
    };
    const int64_t leaf = file.leaf(x);
    file.event(call_event(0, "", -1, json::array()));
    const int64_t y = file.op("aten::mul.Tensor", {ref(leaf), 1.0}, {x}, {}, {{"in", 0}});
    file.event(call_event(1, "cut", 0, json::array({named(y, x)})));
    args.insert(args.begin(), ref(y));
    const int64_t view = file.op(op, args, {seen}, {}, {{"in", 1}, {"view", true}});
    file.event(ret_event(1, json::array({named(view, seen)})));
    file.event(call_event(2, "act", 0, json::array({named(view, seen)})));
    const int64_t result = file.op("aten::gelu", {ref(view)}, {at::gelu(seen)}, {}, {{"in", 2}});
    file.event(ret_event(2, json::array({named(result, seen)})));
    file.event(ret_event(0, json::array({named(result, seen)})));
  }
  ProgramFile file{"cropped.h5"};
};

// The port has `cut`, and the activation of it: its own program, run on its own inputs, gives its result.
void check_port(Cropped& model, const at::Tensor& cut) {
  const Dump dump = model.file.dump();
  const Program program = load_program(dump);
  const test::Scratch scratch;
  const size_t at_cut = program.find("cut").value(), at_act = program.find("act").value();
  const PortValues port = [&](size_t boundary) -> std::optional<at::Tensor> {
    if (boundary == at_cut) return cut;
    return boundary == at_act ? std::optional(at::gelu(cut.contiguous())) : std::nullopt;
  };
  extract(dump, program, {"act", 0, port}, scratch / "part.h5");
  const Dump part(scratch / "part.h5");
  const Repro repro = run_again(part, load_program(part), Precision::recorded);
  CHECK(repro.reproduced);
  REQUIRE(repro.port.size() == 1);
  CHECK(repro.port[0].own_inputs);
  CHECK(repro.port[0].stats.rel_l2.value_or(1) < 1e-6);
}

}  // namespace

TEST_CASE("extract: a port's value in place of a slice with gaps, as a convolution whose padding is cropped") {
  at::manual_seed(1);
  const at::Tensor x = at::randn({2, 4, 9}), cut = x.narrow(2, 0, 8);
  Cropped model(x, "aten::slice.Tensor", {2, 0, -1}, cut);
  SUBCASE("dense") { check_port(model, (cut * 1.5).contiguous()); }
  SUBCASE("transposed") { check_port(model, (cut * 1.5).transpose(1, 2).contiguous().transpose(1, 2)); }
}

TEST_CASE("extract: a port's value in place of an expanded one, whose elements share memory") {
  at::manual_seed(2);
  const at::Tensor x = at::randn({2, 1, 8});
  Cropped model(x, "aten::expand", {json{2, 4, 8}}, x.expand({2, 4, 8}));
  check_port(model, at::randn({2, 4, 8}));
}

TEST_CASE("extract: of a value that equals the port's but for what lies between its elements nothing is kept") {
  at::manual_seed(3);
  const at::Tensor x = at::randn({2, 4, 9}), cut = x.narrow(2, 0, 8);
  Cropped model(x, "aten::slice.Tensor", {2, 0, -1}, cut);
  const Dump dump = model.file.dump();
  const Program program = load_program(dump);
  const test::Scratch scratch;
  const size_t at_cut = program.find("cut").value();
  const PortValues port = [&](size_t boundary) {
    return boundary == at_cut ? std::optional(cut.contiguous()) : std::nullopt;
  };
  extract(dump, program, {"act", 0, port}, scratch / "part.h5");
  CHECK(port_state(Dump(scratch / "part.h5")).inputs.empty());
}

TEST_CASE("replay: an alias that reaches beyond its base names the file and the value") {
  ProgramFile file("beyond.h5");
  const at::Tensor base = at::randn({6});
  const int64_t leaf = file.leaf(base);
  json alias = value_json(7, at::empty({2, 3}), "");
  alias.update({{"e", "leaf"}, {"names", json::array()}, {"k", nullptr}});
  std::vector<int64_t> stride{3, 1};
  int64_t offset = 0;
  std::string expected = "reaches beyond the 6 elements of value 0";
  SUBCASE("by its offset") { offset = 1; }
  SUBCASE("by a stride") { stride = {4, 1}; }
  SUBCASE("by a stride without bound") { stride = {INT64_MAX, INT64_MAX}; }
  SUBCASE("not at all") { expected.clear(); }
  alias["alias"] = {{"v", leaf}, {"stride", stride}, {"offset", offset}};
  file.event(alias);
  file.op("aten::neg", {ref(7)}, {-base.view({2, 3})});
  const Dump dump = file.dump();
  std::string message;
  try {
    replayed(dump);
  } catch (const Error& error) {
    message = error.what();
  }
  CHECK(message.empty() == expected.empty());
  CHECK(contains(message, expected));
  CHECK(test::lines(message) == 0);
}

// Small programs written by hand, whose results ATen computes directly.
#include <doctest/doctest.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "program_file.hpp"
#include "trace/replay.hpp"

using namespace parity;
using namespace parity::testing;
using nlohmann::json;

namespace {

// y = x W^T + b; z = layer_norm(y); z viewed, its first half doubled in place; out = z * 2 (z seen through its base)
struct Recorded {
  at::Tensor x, w, b, y, z, half, out;
};

json v(int64_t id) { return {{"v", id}}; }

json op_event(const char* name, json args, json out, int in = 0) {
  return {{"e", "op"},
          {"op", name},
          {"in", in},
          {"args", std::move(args)},
          {"kwargs", json::object()},
          {"out", std::move(out)}};
}

json call_event(int id, const char* path, int parent, const char* type, json input) {
  return {{"e", "call"},
          {"id", id},
          {"path", path},
          {"call", 0},
          {"parent", parent},
          {"class", type},
          {"inputs", json::array({std::move(input)})},
          {"literals", json::object()},
          {"autocast", nullptr}};
}

Recorded record(const std::filesystem::path& path, at::ScalarType dtype) {
  at::manual_seed(7);
  Recorded r;
  r.x = at::randn({4, 8}, at::kFloat).to(dtype);
  r.w = at::randn({6, 8}, at::kFloat).to(dtype);
  r.b = at::randn({6}, at::kFloat).to(dtype);
  r.y = at::addmm(r.b, r.x, r.w.t());
  r.z = std::get<0>(at::native_layer_norm(r.y, {6}, {}, {}, 1e-5));
  const at::Tensor first = r.z.clone();
  r.half = r.z.narrow(0, 0, 2).mul_(3).clone();
  r.out = at::add(r.z, r.z, 0.5);
  RecordingFile file(path);
  for (const auto& [key, tensor] : std::map<std::string, at::Tensor>{
           {"0", r.x}, {"1", r.w}, {"2", r.b}, {"4", r.y}, {"5", first}, {"8.1", r.half}, {"9", r.out}})
    file.value(key, tensor);
  for (const int id : {0, 1, 2}) {
    json leaf = value_json(id, std::vector{r.x, r.w, r.b}[id], std::to_string(id));
    leaf.update({{"e", "leaf"}, {"names", json::array()}});
    file.event(leaf);
  }
  file.event(call_event(0, "", -1, "Net", value_json(0, r.x)));
  json transpose = op_event("aten::t", {v(1)}, {value_json(3, r.w.t())});
  transpose["view"] = true;
  file.event(transpose);
  file.event(op_event("aten::addmm", {v(2), v(0), v(3)}, {value_json(4, r.y, "4")}));
  file.event(call_event(1, "norm", 0, "LayerNorm", value_json(4, r.y)));
  file.event(op_event("aten::native_layer_norm", {v(4), {6}, nullptr, nullptr, 1e-5},
                      {value_json(5, r.z, "5"), nullptr, nullptr}, 1));
  file.event({{"e", "ret"}, {"id", 1}, {"outputs", json::array({value_json(5, r.z, "5")})}});
  json narrow = op_event("aten::slice.Tensor", {v(5), 0, 0, 2}, {value_json(8, r.half)});
  narrow["view"] = true;
  file.event(narrow);
  file.event(op_event("aten::mul_.Tensor", {v(8), 3}, {value_json(8, r.half, "8.1")}));
  json add = op_event("aten::add.Tensor", {v(5), v(5)}, {value_json(9, r.out, "9")});
  add["kwargs"] = {{"alpha", 0.5}};
  file.event(add);
  file.event({{"e", "ret"}, {"id", 0}, {"outputs", json::array({value_json(9, r.out, "9")})}});
  return r;
}

std::map<std::string, at::Tensor> replayed(const Dump& dump, const Program& program, const ReplayOptions& options) {
  std::map<std::string, at::Tensor> values;
  replay(dump, program, options, [&](size_t b, const at::Tensor& value) {
    values[program.boundaries[b].path] = value.clone();
    return std::nullopt;
  });
  return values;
}

}  // namespace

TEST_CASE("trace: paths, calls and boundaries are those of FORMAT.md") {
  const TemporaryFile file("paths.h5");
  record(file.path(), at::kFloat);
  const Dump dump(file.path());
  const Program program = load_program(dump);
  std::vector<std::string> paths;
  for (const Boundary& boundary : program.boundaries) paths.push_back(boundary.path);
  CHECK(paths == std::vector<std::string>{"/addmm.0", "norm/native_layer_norm.0", "norm", "/mul_.0", "/add.0", ""});
  CHECK(program.boundaries[2].kind == "LayerNorm");
  CHECK(program.boundaries[2].position == 3);
  CHECK(program.find("") == 5);
  CHECK_FALSE(program.find("", 1));
  CHECK(program.calls[1].begin == 2);
  CHECK(program.calls[1].end == 3);
  CHECK(program.calls[0].end == 6);
}

TEST_CASE(
    "trace: replay in the recorded dtypes is bitwise what was recorded, in-place writes seen through every view") {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    CAPTURE(dtype_name(dtype));
    const TemporaryFile file("bitwise.h5");
    const Recorded r = record(file.path(), dtype);
    const Dump dump(file.path());
    auto values = replayed(dump, load_program(dump), {});
    CHECK(same_bits(values.at("/addmm.0"), r.y));
    CHECK(same_bits(values.at("/mul_.0"), r.half));
    CHECK(same_bits(values.at(""), r.out));
  }
}

TEST_CASE("trace: under fp64 every float is fp64") {
  const TemporaryFile file("fp64.h5");
  const Recorded r = record(file.path(), at::kBFloat16);
  const Dump dump(file.path());
  ReplayOptions options;
  options.precision = Precision::fp64;
  for (const auto& [path, value] : replayed(dump, load_program(dump), options)) {
    CAPTURE(path);
    CHECK(dtype_name(value.scalar_type()) == "float64");
  }
  const at::Tensor y = at::addmm(r.b.to(at::kDouble), r.x.to(at::kDouble), r.w.to(at::kDouble).t());
  CHECK(same_bits(replayed(dump, load_program(dump), options).at("/addmm.0"), y));
}

namespace {

// A call of a module that doubles its one argument; the id of its result.
int64_t call_twice(ProgramFile& file, int number, int64_t argument, const at::Tensor& value, const at::Tensor& result) {
  file.event({{"e", "call"},
              {"id", number},
              {"path", ""},
              {"call", number},
              {"parent", -1},
              {"class", "Twice"},
              {"inputs", json::array({value_json(argument, value, std::to_string(argument))})},
              {"literals", json::object()},
              {"autocast", nullptr}});
  const int64_t made = file.op("aten::mul.Tensor", {ref(argument), 2}, {result}, {}, {{"in", number}});
  file.event(
      {{"e", "ret"}, {"id", number}, {"outputs", json::array({value_json(made, result, std::to_string(made))})}});
  return made;
}

}  // namespace

TEST_CASE("replay: a view that fits the recorded layout alone has the same numbers in any other") {
  const at::Tensor x = at::randn({1, 8, 5, 6}).contiguous(at::MemoryFormat::ChannelsLast), w = at::randn({4, 8, 3, 3});
  const at::Tensor y =
      at::convolution(x, w, {}, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1).contiguous(x.suggest_memory_format());
  const at::Tensor rows = y.permute({0, 2, 3, 1}).view({-1, 4});
  ProgramFile file("channels_last.h5");
  const int64_t in = file.leaf(x), by = file.leaf(w);
  const json args = {ref(in), ref(by), nullptr, {1, 1}, {1, 1}, {1, 1}, false, {0, 0}, 1};
  const int64_t image = file.op("aten::convolution", args, {y}, {}, {{"store", false}});
  const int64_t moved =
      file.op("aten::permute", {ref(image), {0, 2, 3, 1}}, {y.permute({0, 2, 3, 1})}, {}, {{"view", true}});
  const int64_t flat = file.op("aten::view", {ref(moved), {-1, 4}}, {rows}, {}, {{"view", true}});
  file.op("aten::mul.Tensor", {ref(flat), 2}, {rows * 2});
  const Dump dump = file.dump();
  const at::Tensor exact = replayed(dump, Precision::fp64).at("~/mul.0");  // convolutions in fp64 drop channels last
  CHECK(at::allclose(exact, (rows * 2).to(at::kDouble), 1e-4, 1e-5));
}

TEST_CASE("trace: a model's arguments that recorded ops made are computed again, or taken as recorded and raised") {
  ProgramFile file("arguments.h5");
  const at::Tensor latents = at::rand({3, 4}) + 1, low = latents.to(at::kBFloat16), twice = low * 2, next = twice + 1;
  const int64_t leaf = file.leaf(latents);
  const int64_t cast = file.op("aten::_to_copy", {ref(leaf)}, {low}, {{"dtype", {{"dtype", "bfloat16"}}}});
  const int64_t first = call_twice(file, 0, cast, low, twice);
  const int64_t between = file.op("aten::add.Tensor", {ref(first), 1}, {next});
  call_twice(file, 1, between, next, next * 2);
  const Dump dump = file.dump();
  const Program program = load_program(dump);
  for (const bool recorded_inputs : {false, true}) {
    ReplayOptions options;
    options.precision = Precision::fp64;
    options.recorded_inputs = recorded_inputs;
    std::vector<at::Tensor> results;  // of the two calls
    replay(dump, program, options, [&](size_t b, const at::Tensor& value) {
      if (program.boundaries[b].path.empty()) results.push_back(value.clone());
      return std::nullopt;
    });
    const at::Tensor wide = latents.to(at::kDouble);
    const at::Tensor given = recorded_inputs ? low.to(at::kDouble) : wide;
    CHECK(at::equal(results.at(0), given * 2));
    CHECK(at::equal(results.at(1), recorded_inputs ? next.to(at::kDouble) * 2 : (wide * 2 + 1) * 2));
  }
}

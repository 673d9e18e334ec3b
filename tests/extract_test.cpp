// extract and replay: parts of real recordings taken out and run again. The oracle is the source recording's own stored
// tensor, read past everything that extracting does.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <set>

#include "command.hpp"
#include "core/error.hpp"
#include "dump/dump_writer.hpp"
#include "dump/verify.hpp"
#include "jobs/repro.hpp"
#include "recording_file.hpp"
#include "test_places.hpp"
#include "trace/extract.hpp"
#include "trace/replay.hpp"

using namespace parity;
using namespace parity::test;
using parity::testing::same_bits;

namespace {

std::filesystem::path source(const std::string& name) { return std::filesystem::path(PARITY_SOURCE_DIR) / name; }

const std::string kBf16 = "reference_dumps/skyreels-v2-t2v.bf16.h5", kFp32 = "reference_dumps/skyreels-v2-t2v.fp32.h5",
                  kInPlace = "tests/data/in_place.h5", kGpt2 = "tests/data/gpt2.h5",
                  kModules = "reference_dumps/wan-i2v.bf16.h5";

struct Opened {
  explicit Opened(const std::filesystem::path& file) : dump(file), program(load_program(dump)) {
    at::set_num_threads(dump.provenance().value("threads", 1));
  }
  Dump dump;
  Program program;
};

// Extracts, checks the file, runs it; returns how many stored boundaries were compared with the source's.
int check_part(const Opened& from, const std::string& path, int call, const std::filesystem::path& file) {
  CAPTURE(from.dump.file().string());
  CAPTURE(path);
  CAPTURE(call);
  const Extracted done = extract(from.dump, from.program, {path, call, nullptr}, file);
  const Opened part(file);
  for (const std::string& problem : verify(part.dump)) FAIL_CHECK(problem);
  CHECK_FALSE(done.outputs.empty());
  for (const std::string& output : done.outputs) CHECK_MESSAGE(part.program.find(output, call).has_value(), output);
  const Repro repro = run_again(part.dump, part.program, Precision::recorded);
  CHECK(repro.reproduced);
  int compared = 0;
  replay(part.dump, part.program, {}, [&](size_t b, const at::Tensor& value) {
    const Boundary& boundary = part.program.boundaries[b];
    const auto original = from.program.find(boundary.path, boundary.call);
    if (!original || from.program.boundaries[*original].value.key.empty() || !boundary.comparable) return std::nullopt;
    ++compared;
    const at::Tensor recorded = from.dump.value(from.program.boundaries[*original].value.key);
    if (repro.same_kernels) CHECK_MESSAGE(same_bits(recorded, value), boundary.path);
    return std::nullopt;
  });
  return compared;
}

// What is stored under `link` of a finished file gets other numbers, through HDF5 alone.
void change(const std::filesystem::path& file, const std::string& link) {
  const hid_t id = H5Fopen(file.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t data = H5Dopen2(id, link.c_str(), H5P_DEFAULT), type = H5Dget_type(data), space = H5Dget_space(data);
  REQUIRE(data >= 0);
  std::vector<char> bytes(H5Tget_size(type) * H5Sget_simple_extent_npoints(space));
  H5Dread(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
  for (size_t i = H5Tget_size(type) - 1; i < bytes.size(); i += H5Tget_size(type)) bytes[i] ^= 0x01;  // exponent
  H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data());
  H5Sclose(space);
  H5Tclose(type);
  H5Dclose(data);
  H5Fclose(id);
}

std::string extract_line(const std::string& dump, const std::string& path, const std::filesystem::path& out) {
  return "extract " + source(dump).string() + " --layer '" + path + "' -o " + out.string();
}

}  // namespace

TEST_CASE("extract: every op and every module with in-place ops, views and shared memory runs as recorded") {
  const Scratch scratch;
  for (const std::string& name : {kInPlace, kGpt2}) {
    const Opened from(source(name));
    std::set<std::pair<std::string, int>> parts;
    for (const ModuleCall& call : from.program.calls)
      if (call.begin < call.end) parts.emplace(call.path, call.call);
    for (size_t i = 0; i < from.program.ops.size(); ++i)
      if (name == kInPlace || i % 7 == 0) parts.emplace(from.program.ops[i].path, from.program.ops[i].call);
    CHECK(parts.size() > 30);
    int compared = 0;
    for (const auto& [path, call] : parts) {
      if (path.find("/empty") == std::string::npos)
        compared += check_part(from, path, call, scratch / "part.h5");
      else
        CHECK_THROWS_AS(extract(from.dump, from.program, {path, call, nullptr}, scratch / "part.h5"), Error);
    }
    CHECK(compared > 60);
  }
}

TEST_CASE("extract: ops, blocks and the whole of real models in fp32 and bf16 run as recorded") {
  const Scratch scratch;
  for (const std::string& name : {kBf16, kFp32, kModules}) {
    const Opened from(source(name));
    for (const std::string path : {"", "blocks.0", "blocks.1.self_attn", "blocks.0.norm1", "blocks.0.self_attn.norm_q"})
      CHECK(check_part(from, path, 0, scratch / "part.h5") > 0);
    for (const std::string path : {"blocks.0.self_attn.q/addmm.0", "blocks.0/add.1", "blocks.1/mul.0"})
      check_part(from, path, 0, scratch / "part.h5");
  }
}

TEST_CASE("extract: arguments and weights keep their names, numbers and bits") {
  const Scratch scratch;
  const Opened from(source(kBf16));
  const Extracted done = extract(from.dump, from.program, {"blocks.0.self_attn.q", {}, nullptr}, scratch / "q.h5");
  CHECK(done.captured.empty());
  const Dump part(scratch / "q.h5");
  CHECK(part.input_names() == std::vector<std::string>{"x"});
  CHECK(part.weight_names() == std::vector<std::string>{"blocks.0.self_attn.q.bias", "blocks.0.self_attn.q.weight"});
  for (const std::string& weight : part.weight_names()) CHECK(same_bits(part.weight(weight), from.dump.weight(weight)));
  CHECK(part.provenance()["extracted"]["path"] == "blocks.0.self_attn.q");
  extract(from.dump, from.program, {"blocks.0.self_attn.q/addmm.0", {}, nullptr}, scratch / "mm.h5");
  const Opened op(scratch / "mm.h5");
  CHECK(op.dump.input_names() == std::vector<std::string>{"mat1"});  // bias and mat2 are weights
  CHECK(op.dump.weight_names() == part.weight_names());
  CHECK(op.program.ops.back().path == "blocks.0.self_attn.q/addmm.0");
}

TEST_CASE("extract: an op keeps its number when those before it are gone") {
  const Scratch scratch;
  const Opened from(source(kBf16));
  extract(from.dump, from.program, {"blocks.1/add.2", {}, nullptr}, scratch / "add.h5");
  const Opened part(scratch / "add.h5");
  CHECK(part.program.find("blocks.1/add.2").has_value());
  CHECK_FALSE(part.program.find("blocks.1/add.0").has_value());
}

TEST_CASE("dump: what the writer writes the reader reads, for every dtype, stride and place") {
  const Scratch scratch;
  std::map<std::string, at::Tensor> tensors;
  for (const at::ScalarType dtype :
       {at::kDouble, at::kFloat, at::kHalf, at::kBFloat16, at::kLong, at::kInt, at::kShort, at::kChar, at::kByte,
        at::kBool, at::kComplexFloat, at::kComplexDouble, at::kFloat8_e4m3fn, at::kFloat8_e5m2})
    tensors[c10::toString(dtype)] = (at::arange(24).reshape({2, 3, 4}) - (dtype == at::kByte ? 0 : 7)).to(dtype);
  tensors["permuted"] = at::rand({2, 3, 4}).permute({2, 0, 1});
  tensors["slice"] = at::rand({4, 6}).narrow(1, 1, 3);
  tensors["beyond"] = at::rand({64}).narrow(0, 3, 8);
  tensors["scalar"] = at::rand({});
  tensors["empty"] = at::rand({0, 3});
  tensors["special"] = at::full({3}, std::numeric_limits<double>::quiet_NaN());
  {
    DumpWriter writer(scratch / "all.h5", {"op", "test", "Model", {{"long", std::string(100000, 'x')}}});
    for (const auto& [key, tensor] : tensors) writer.value(key, tensor);
    writer.link("weights", "a/b", "permuted");
    writer.close();
  }
  const Dump dump(scratch / "all.h5");
  CHECK(dump.complete());
  CHECK(dump.provenance()["long"].get<std::string>().size() == 100000);
  for (const auto& [key, tensor] : tensors) {
    CAPTURE(key);
    CHECK(same_bits(dump.value(key), tensor));
  }
  CHECK(dump.value("permuted").strides() == tensors["permuted"].strides());
  CHECK(reinterpret_cast<uintptr_t>(dump.value("beyond").const_data_ptr()) % 64 == 12);
  CHECK(same_bits(dump.weight("a/b"), tensors["permuted"]));
  { DumpWriter unfinished(scratch / "never.h5", {}); }
  CHECK(std::distance(std::filesystem::directory_iterator(dump.file().parent_path()), {}) == 1);
}

TEST_CASE("replay: a changed weight, input or result is found, and the exit status says so") {
  const Scratch scratch;
  for (const std::string& name : {kBf16, kFp32}) {
    const auto file = scratch / "norm.h5";
    REQUIRE(parity_check(extract_line(name, "blocks.0.self_attn.norm_q", file)).status == 0);
    CHECK(parity_check("inspect --verify " + file.string()).status == 0);
    const auto good = parity_check("replay " + file.string() + " --json " + (scratch / "r.json").string());
    INFO(good.out << good.err);
    CHECK(good.status == 0);
    CHECK(nlohmann::json::parse(read_text(scratch / "r.json"))["reproduced"] == true);
    for (const std::string precision : {"fp32", "fp64"})
      CHECK(parity_check("replay --dtype " + precision + " " + file.string()).status == 0);
    for (const std::string link : {"weights/blocks.0.self_attn.norm_q.weight", "inputs/0/x", "outputs/0/0"}) {
      CAPTURE(link);
      change(file, link);
      for (const std::string precision : {"recorded", "fp32", "fp64"})
        CHECK(parity_check("replay --quiet --dtype " + precision + " " + file.string()).status == 1);
      change(file, link);  // back again
    }
    CHECK(parity_check("replay --quiet " + file.string()).status == 0);
  }
}

TEST_CASE("extract: wrong names, several calls and damaged files are said in one line, exit status 2") {
  const Scratch scratch;
  const auto out = scratch / "x.h5";
  const auto misspelt = parity_check(extract_line(kBf16, "blocks.0.self_atn.q", out));
  CHECK(misspelt.status == 2);
  CHECK(misspelt.err.find("'blocks.0.self_attn.q'") != std::string::npos);
  CHECK(lines(misspelt.err) == 1);
  const auto several = parity_check(extract_line(kGpt2, "transformer.h.0.mlp", out));
  CHECK(several.status == 2);
  CHECK(several.err.find("--call") != std::string::npos);
  CHECK(lines(several.err) == 1);
  CHECK(parity_check(extract_line(kGpt2, "transformer.h.0.mlp", out) + " --call 7").status == 2);
  CHECK_FALSE(std::filesystem::exists(out));
  CHECK(parity_check(extract_line(kGpt2, "transformer.h.0.mlp", out) + " --call 1").status == 0);
  CHECK(parity_check("extract " + out.string() + " --layer transformer.h.0.mlp -o " + out.string()).status == 2);
  const std::string whole = read_text(out);
  std::ofstream(scratch / "half.h5", std::ios::binary) << whole.substr(0, whole.size() / 2);
  const auto half = parity_check("replay " + (scratch / "half.h5").string());
  CHECK(half.status == 2);
  CHECK(lines(half.err) == 1);
}

TEST_CASE("extract: with a port its inputs and outputs go in, and its error is its own") {
  const Scratch scratch;
  const auto port = scratch / "port.h5", file = scratch / "x.h5", json = scratch / "r.json";
  const auto run = [&](int status) {
    const auto extracted =
        parity_check(extract_line(kBf16, "blocks.0.self_attn.q", file) + " --candidate " + port.string());
    REQUIRE_MESSAGE(extracted.status == 0, extracted.err);
    CHECK(parity_check("inspect --verify " + file.string()).status == 0);
    CHECK(parity_check("replay --quiet " + file.string() + " --json " + json.string()).status == status);
    const auto rows = nlohmann::json::parse(read_text(json))["port"];
    REQUIRE(rows.size() == 1);
    return rows[0];
  };
  std::filesystem::copy_file(source(kBf16), port);
  auto row = run(0);                                                     // the port is the reference
  CHECK(row["ratio"].get<double>() == doctest::Approx(1).epsilon(0.2));  // exactly 1 on the recording's kind of CPU
  CHECK(row["own_inputs"] == false);
  change(port, "values/78");  // its output alone
  row = run(0);
  CHECK(row["own_inputs"] == false);
  CHECK(row["ratio"] > 10);
  std::filesystem::copy_file(source(kBf16), port, std::filesystem::copy_options::overwrite_existing);
  change(port, "values/72");  // what it reads
  row = run(0);
  CHECK(row["own_inputs"] == true);
  CHECK(row["ratio"] > 10);  // its output does not follow from its input
}

TEST_CASE("replay: the test that it writes for the port compiles") {
  const Scratch scratch;
  const std::filesystem::path build = std::filesystem::path(PARITY_CHECK_BINARY).parent_path();
  const auto commands = nlohmann::json::parse(read_text(build / "compile_commands.json"));
  for (const std::string path : {"blocks.0", "blocks.0.self_attn.q/addmm.0", "blocks.0.norm1/native_layer_norm.0"}) {
    CAPTURE(path);
    const auto file = scratch / "x.h5", snippet = scratch / "snippet.cpp";
    REQUIRE(parity_check(extract_line(kBf16, path, file)).status == 0);
    REQUIRE(parity_check("replay --quiet " + file.string() + " --snippet " + snippet.string()).status == 0);
    CHECK(read_text(snippet).find("CHECK(stats.difference_norm <=") != std::string::npos);
    int tried = 0;
    for (const auto& entry : commands) {
      if (!entry["file"].get<std::string>().ends_with("tests/main.cpp")) continue;
      ++tried;
      std::string command = entry["command"];
      command = command.substr(0, command.rfind(" -o ")) + " -fsyntax-only -Wall -Wextra -Werror " + snippet.string();
      const auto compiled = shell("cd " + build.string() + " && " + command);
      CHECK_MESSAGE(compiled.status == 0, compiled.err << read_text(snippet));
    }
    CHECK(tried == 1);
  }
}

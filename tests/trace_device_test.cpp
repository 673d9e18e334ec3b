// Replays on a device other than the one that recorded: every tensor lies there, and the numbers are the same.
#include <doctest/doctest.h>

#include "bench/compare.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "core/statistics.hpp"
#include "jobs/model_job.hpp"
#include "jobs/port_job.hpp"
#include "jobs/sides.hpp"
#include "measure/measure.hpp"
#include "models/wan/ported.hpp"
#include "other_device.hpp"
#include "program_file.hpp"
#include "test_places.hpp"
#include "trace/device.hpp"
#include "trace/lanes.hpp"
#include "trace/machine.hpp"
#include "trace/settings.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

// A program as a GPU's recorder writes it: factories with its device, with the CPU, and with none.
void write_gpu_program(ProgramFile& file) {
  const at::Tensor x = at::arange(6, at::kFloat).reshape({2, 3}), places = at::arange(3);
  const int64_t a = file.leaf(x);
  const auto on = [](const char* device) { return json{{"device", {{"device", device}}}}; };
  const int64_t there = file.op("aten::arange", {3}, {places}, on("cuda:0"));
  const int64_t host = file.op("aten::ones", {{3}}, {at::ones({3})}, on("cpu"));
  const int64_t none = file.op("aten::full", {{2, 3}, 2.5}, {at::full({2, 3}, 2.5)});
  const int64_t moved = file.op("aten::_to_copy", {ref(host)}, {at::ones({3})}, on("cuda:1"));
  const int64_t sum = file.op("aten::add.Tensor", {ref(a), ref(there)}, {x + places});
  const int64_t product = file.op("aten::mul.Tensor", {ref(sum), ref(moved)}, {x + places});
  file.op("aten::add.Tensor", {ref(product), ref(none)}, {x + places + 2.5});
}

// Devices of the results of each op, in the replay's memory.
std::vector<at::Device> devices_of(const Dump& dump) {
  const Program program = load_program(dump);
  std::vector<at::Device> found;
  const OpObserver observe = [&](int op, const std::function<at::Tensor(int64_t)>& value) {
    for (const auto& output : program.ops[static_cast<size_t>(op)].outputs)
      if (output) found.push_back(value(output->id).device());
  };
  replay_in_step(dump, program, {{}}, nullptr, {}, observe);
  return found;
}

void check_same_values(const std::map<std::string, at::Tensor>& a, const std::map<std::string, at::Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (const auto& [path, value] : a) {
    CAPTURE(path);
    CHECK(b.at(path).is_cpu());
    CHECK(same_bits(value, b.at(path)));
  }
}

// Of whole models: memory of another device begins elsewhere within a cache line, and MKL's sums follow that.
void check_equal_but_for_rounding(const std::map<std::string, at::Tensor>& a,
                                  const std::map<std::string, at::Tensor>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (const auto& [path, value] : a) {
    CAPTURE(path);
    const at::Tensor& other = b.at(path);
    CHECK(other.is_cpu());
    CHECK((other.scalar_type() == value.scalar_type()));
    REQUIRE(other.sizes() == value.sizes());
    const Stats stats = measure_sums(value, other);
    CHECK(stats.special_mismatch == 0);
    CHECK(stats.difference_norm <= tolerance * stats.reference_norm);
  }
}

JobResult judged_pair(const std::string& reference, const std::string& candidate) {
  const auto folder = std::filesystem::path(PARITY_SOURCE_DIR) / "reference_dumps" / "selftest";
  const Sides sides = open_sides(folder / reference, folder / candidate, "");
  return run_port_job(*sides.reference.dump, sides.reference.program, sides.candidate.tensors, sides.pairing, {});
}

// "extra rounding", without the numbers.
std::string name_of(const OpResult& row) {
  std::string name = row.diagnosis.substr(0, row.diagnosis.find_first_of(":("));
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

std::vector<OpResult> model_rows() {
  const Dump dump(std::filesystem::path(PARITY_SOURCE_DIR) / "reference_dumps" / "skyreels-v2-t2v.bf16.h5");
  MainJobOptions options;
  options.dtypes = {"bf16"};
  options.kernels = Kernels::aten;
  const auto make = [](const Dump& d, Precision precision) { return port_wan(d, precision, WanOps{}); };
  return run_main_job(dump, load_program(dump), make, options).rows;
}

}  // namespace

TEST_CASE("trace: what was recorded on a GPU is replayed on the CPU, and on any other device") {
  ProgramFile file("gpu.h5");
  write_gpu_program(file);
  const Dump dump = file.dump();
  for (const at::Device& device : devices_of(dump)) CHECK(device.is_cpu());
  const auto here = replayed(dump);
  CHECK(here.size() == 7);
  const Program program = load_program(dump);
  for (const Boundary& b : program.boundaries) CHECK(same_bits(here.at(b.path), dump.value(b.value.key)));
  const ReplayDevice there(test::other_device());
  const auto devices = devices_of(dump);
  CHECK(devices.size() == 7);
  for (const at::Device& device : devices) CHECK(device == test::other_device());
  check_same_values(here, replayed(dump));
}

TEST_CASE("trace: the device is the CPU again when nobody asks for another") {
  CHECK(replay_device().is_cpu());
  {
    const ReplayDevice there(test::other_device());
    CHECK(replay_device() == test::other_device());
  }
  CHECK(replay_device().is_cpu());
}

TEST_CASE("trace: recordings of real models give the same values on another device") {
  for (const char* name : {"tests/data/gpt2.h5", "tests/data/in_place.h5", "tests/data/vae.h5",
                           "reference_dumps/diffusers-wan-t2v.bf16.h5"})
    for (const Precision precision : {Precision::recorded, Precision::fp64}) {
      CAPTURE(name);
      const Dump dump(std::filesystem::path(PARITY_SOURCE_DIR) / name);
      const auto here = replayed(dump, precision);
      const int64_t before = test::runs_on_other_device();
      const ReplayDevice there(test::other_device());
      for (const at::Device& device : devices_of(dump)) CHECK(device == test::other_device());
      CHECK(test::runs_on_other_device() > before);
      // A free run: in bf16 a hundred roundings follow each other (.2 of a unit each at most), in fp32 as many.
      check_equal_but_for_rounding(here, replayed(dump, precision), precision == Precision::fp64 ? 1e-12 : 2e-2);
    }
}

TEST_CASE("trace: a port is judged on another device as on the CPU, faults and their names included") {
  for (const char* candidate :
       {"gpt2.bf16.fault.gelu-erf.h5", "gpt2.bf16.fault.mask-off-by-one.h5", "gpt2.bf16.fault.norm-in-bf16.h5",
        "gpt2.bf16.honest.attention-by-the-math-kernel.h5"}) {
    CAPTURE(candidate);
    const JobResult here = judged_pair("gpt2.bf16.h5", candidate);
    const ReplayDevice device(test::other_device());
    const JobResult there = judged_pair("gpt2.bf16.h5", candidate);
    REQUIRE(here.rows.size() == there.rows.size());
    for (size_t i = 0; i < here.rows.size(); ++i) {
      CAPTURE(here.rows[i].path);
      CHECK(here.rows[i].verdict == there.rows[i].verdict);
      CHECK(here.rows[i].gate == there.rows[i].gate);
      CHECK(name_of(here.rows[i]) == name_of(there.rows[i]));
    }
  }
}

TEST_CASE("trace: the C++ model on the CPU beside the reference's program on another device") {
  const std::vector<OpResult> here = model_rows();
  const ReplayDevice device(test::other_device());
  const std::vector<OpResult> there = model_rows();
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) CHECK(here[i].verdict == there[i].verdict);
}

TEST_CASE("trace: a recording of another kind of device came from other kernels") {
  const Machine here = this_machine();
  json provenance{{"cpu", here.cpu},
                  {"cpu_capability", here.cpu_capability},
                  {"torch", here.libtorch},
                  {"threads", here.threads},
                  {"cpu_flags", json::array()}};
  std::istringstream flags(here.cpu_flags);
  for (std::string flag; flags >> flag;) provenance["cpu_flags"].push_back(flag);
  CHECK(other_kernels(provenance).empty());
  provenance["device"] = "cpu";
  CHECK(other_kernels(provenance).empty());
  provenance["device"] = "cuda:0";
  CHECK(other_kernels(provenance) == "device: cuda:0 there, cpu here");
}

TEST_CASE("trace: a device that is none, or that this LibTorch does not have, is refused in one line") {
  CHECK(usable_device("cpu").is_cpu());
  for (const char* name : {"tpu", "", "cuda:x", "meta", "cuda:-1", "cpu:cuda"}) {
    CAPTURE(name);
    CHECK_THROWS_AS(usable_device(name), Error);
  }
  if (!at::hasCUDA()) CHECK_THROWS_WITH_AS(usable_device("cuda"), doctest::Contains("CMAKE_PREFIX_PATH"), Error);
}

TEST_CASE("trace: the GPU's switches are set as recorded, and back") {
  at::Context& context = at::globalContext();
  const bool tf32 = context.allowTF32CuBLAS(), flash = context.userEnabledFlashSDP();
  const json provenance{{"tf32", {{"matmul", !tf32}, {"cudnn", false}}},
                        {"cudnn", {{"version", nullptr}, {"benchmark", true}, {"deterministic", true}}},
                        {"sdpa", {{"flash", !flash}, {"math", false}}}};
  {
    const RecordedSettings settings(provenance);
    CHECK(context.allowTF32CuBLAS() == !tf32);
    CHECK_FALSE(context.allowTF32CuDNN());
    CHECK(context.benchmarkCuDNN());
    CHECK(context.deterministicCuDNN());
    CHECK(context.userEnabledFlashSDP() == !flash);
    CHECK_FALSE(context.userEnabledMathSDP());
    CHECK(context.userEnabledMemEfficientSDP());  // said nothing of
  }
  CHECK(context.allowTF32CuBLAS() == tf32);
  CHECK(context.allowTF32CuDNN());
  CHECK_FALSE(context.benchmarkCuDNN());
  CHECK_FALSE(context.deterministicCuDNN());
  CHECK(context.userEnabledFlashSDP() == flash);
  CHECK(context.userEnabledMathSDP());
  const RecordedSettings nothing(json{{"tf32", nullptr}, {"sdpa", "all"}});  // as old recordings have it
  CHECK(context.allowTF32CuDNN());
}

TEST_CASE("trace: a recording of a CPU has no TF32, whatever PyTorch's defaults were") {
  at::Context& context = at::globalContext();
  const json allowed{{"matmul", true}, {"cudnn", true}};
  {
    const RecordedSettings settings(json{{"device", "cpu"}, {"tf32", allowed}});
    CHECK_FALSE(context.allowTF32CuBLAS());
    CHECK_FALSE(context.allowTF32CuDNN());
  }
  const RecordedSettings settings(json{{"device", "cuda:0"}, {"tf32", allowed}});
  CHECK(context.allowTF32CuBLAS());
  CHECK(context.allowTF32CuDNN());
}

TEST_CASE("bench: compare on another device has the same contestants") {
  CompareBenchOptions options;
  options.dtypes = {"fp32", "bf16"};
  options.candidate = "bf16";
  options.bytes = {1 << 10};
  options.repeats = 1;
  options.device = test::other_device();
  const auto rows = bench_compare(options);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].elements == 256);
  CHECK(rows[0].bytes == 1024 + 512);
  for (const CompareBenchRow& row : rows)
    for (const double seconds : {row.reading, row.sums, row.statistics, row.torch_close}) CHECK(seconds > 0);
  options.bytes = {1};
  CHECK_THROWS_AS(bench_compare(options), Error);
}

TEST_CASE("measure: tensors on a device without kernels of ours are measured on the host") {
  const at::Tensor r = at::arange(1000, at::kFloat), c = r * 1.001f;
  const Stats here = measure(r, c), there = measure(r.to(test::other_device()), c.to(test::other_device()));
  for (const auto& row : kStatistics) CHECK(here.*row.field == there.*row.field);
  CHECK(here.worst_index == there.worst_index);
}

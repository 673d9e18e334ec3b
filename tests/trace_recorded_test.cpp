// Recordings of real models (reference_dumps, tests/data/record.py) run again.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include "core/precision.hpp"
#include "program_file.hpp"
#include "test_places.hpp"
#include "trace/machine.hpp"

using namespace parity;
using namespace parity::testing;

namespace {

struct Recording {
  std::string file;
  double fp64_distance;  // of the model's outputs from the fp64 replay, measured times 4
};

// Measured: gpt2 3.5e-3, vae 4.2e-7, in_place 1.2e-7, fp32 dumps below 4.4e-7 (diffusers-wan-t2v 4.5e-6: its
// fractional time step goes through cos and sin in fp32), bf16 dumps below 7e-3.
const std::array kRecordings{
    Recording{"tests/data/gpt2.h5", 1.5e-2},
    Recording{"tests/data/vae.h5", 2e-6},
    Recording{"tests/data/in_place.h5", 1e-6},
    Recording{"reference_dumps/skyreels-v2-t2v.fp32.h5", 2e-6},
    Recording{"reference_dumps/skyreels-v2-t2v.bf16.h5", 3e-2},
    Recording{"reference_dumps/skyreels-v2-i2v.bf16.h5", 3e-2},
    Recording{"reference_dumps/diffusers-wan-t2v.fp32.h5", 2e-5},
    Recording{"reference_dumps/diffusers-skyreels-v2-df.bf16.h5", 3e-2},
    Recording{"reference_dumps/wan-i2v.bf16.h5", 3e-2},
};

std::filesystem::path path_of(const Recording& recording) {
  return std::filesystem::path(PARITY_SOURCE_DIR) / recording.file;
}

class Threads {
 public:
  explicit Threads(int count) : before_(at::get_num_threads()) { at::set_num_threads(count); }
  ~Threads() { at::set_num_threads(before_); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;

 private:
  int before_;
};

double relative(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor truth = reference.to(at::kDouble);
  return ((value.to(at::kDouble) - truth).norm() / (truth.norm() + 1e-300)).item<double>();
}

// Boundaries whose replayed bits are not the stored ones.
std::vector<size_t> differing(const Dump& dump, const Program& program, const ReplayOptions& options,
                              size_t* compared = nullptr) {
  std::vector<size_t> found;
  replay(dump, program, options, [&](size_t b, const at::Tensor& value) {
    const std::string& key = program.boundaries[b].value.key;
    if (key.empty()) return std::nullopt;
    if (compared != nullptr) ++*compared;
    if (!same_bits(dump.value(key), value)) found.push_back(b);
    return std::nullopt;
  });
  return found;
}

// A recording whose ops write in place, as the machine that recorded it ran it.
struct InPlace {
  Dump dump{path_of({"tests/data/in_place.h5", 0})};
  Threads threads{dump.provenance().value("threads", 1)};
  Program good = load_program(dump);

  size_t op_named(const std::string& path) const {
    for (size_t i = 0; i < good.ops.size(); ++i)
      if (good.ops[i].path == path) return i;
    FAIL("no op " << path);
    return 0;
  }

  std::string first_difference(const Program& program) const {
    const auto found = differing(dump, program, {});
    return found.empty() ? "nothing differs" : program.boundaries[found.front()].path;
  }
};

}  // namespace

TEST_CASE("trace: real models replay bitwise on the kind of CPU they were recorded on") {
  for (const Recording& recording : kRecordings) {
    CAPTURE(recording.file);
    const Dump dump(path_of(recording));
    const Program program = load_program(dump);
    const Threads threads(dump.provenance().value("threads", 1));
    size_t compared = 0;
    const auto different = differing(dump, program, {}, &compared);
    CHECK(compared > 40);
    if (other_kernels(dump.provenance()).empty()) {
      for (const size_t b : different) FAIL_CHECK("differs first at " << program.boundaries[b].path);
    } else {
      MESSAGE("recorded with other kernels: compared by fp64 distance only (" << different.size() << " of " << compared
                                                                              << " differ)");
    }
  }
}

TEST_CASE("trace: under fp64 nothing narrower is left, and the recording lies one rounding path from it") {
  for (const Recording& recording : kRecordings) {
    CAPTURE(recording.file);
    const Dump dump(path_of(recording));
    const Program program = load_program(dump);
    ReplayOptions options;
    options.precision = Precision::fp64;
    int outputs = 0;
    const ReplayReport report = replay(dump, program, options, [&](size_t b, const at::Tensor& value) {
      const Boundary& boundary = program.boundaries[b];
      const auto dtype = dtype_name(value.scalar_type());
      if (at::isFloatingType(value.scalar_type())) CHECK_MESSAGE(dtype == "float64", boundary.path);
      if (at::isComplexType(value.scalar_type())) CHECK_MESSAGE(dtype == "complex128", boundary.path);
      if (boundary.path.empty() && at::isFloatingType(boundary.value.dtype)) {
        const double distance = relative(dump.value(boundary.value.key), value);
        CHECK(distance <= recording.fp64_distance);
        CHECK(distance > 0);
        ++outputs;
      }
      return std::nullopt;
    });
    CHECK(report.lowered.empty());
    CHECK(outputs > 0);
  }
}

TEST_CASE("trace: any part of a program replays alone from stored values") {
  for (const Recording& recording : kRecordings) {
    CAPTURE(recording.file);
    const Dump dump(path_of(recording));
    if (!other_kernels(dump.provenance()).empty()) continue;  // said by the test above
    const Program program = load_program(dump);
    const Threads threads(dump.provenance().value("threads", 1));
    const int count = static_cast<int>(program.ops.size());
    size_t compared = 0;
    for (int part = 0; part < 12; ++part) {
      ReplayOptions options;
      options.begin = count * part / 12;
      options.end = std::min(count, options.begin + count / 12 + 1);
      CHECK(differing(dump, program, options, &compared).empty());
    }
    CHECK(compared > 40);
  }
}

TEST_CASE("trace: a value put in at a boundary changes what is computed from it, and nothing else") {
  for (const Recording& recording : kRecordings) {
    CAPTURE(recording.file);
    const Dump dump(path_of(recording));
    const Program program = load_program(dump);
    const size_t count = program.boundaries.size();
    std::vector<at::Tensor> plain(count);
    replay(dump, program, {}, [&](size_t b, const at::Tensor& value) {
      plain[b] = value.clone();
      return std::nullopt;
    });
    const auto direct = program.marked_ancestors(std::vector<bool>(count, true));
    for (size_t changed = 3; changed < count; changed += count / 7) {
      if (!at::isFloatingType(program.boundaries[changed].value.dtype)) continue;
      CAPTURE(program.boundaries[changed].path);
      std::vector<bool> reached(count);
      reached[changed] = true;
      for (size_t b = changed + 1; b < count; ++b)
        for (const size_t a : direct[b]) reached[b] = reached[b] || reached[a];
      size_t moved = 0;
      replay(dump, program, {}, [&](size_t b, const at::Tensor& value) -> std::optional<at::Tensor> {
        if (!same_bits(value, plain[b])) {
          ++moved;
          CHECK_MESSAGE(reached[b], program.boundaries[b].path);
        }
        return b == changed ? std::optional(value * 1.5 + 0.25) : std::nullopt;
      });
      const bool read_later = std::count(reached.begin(), reached.end(), true) > 1;
      CHECK((moved > 0) == read_later);
    }
  }
}

TEST_CASE("trace: a changed program shows at the op that was changed") {
  const InPlace r;
  if (!other_kernels(r.dump.provenance()).empty()) return;
  REQUIRE(differing(r.dump, r.good, {}).empty());
  SUBCASE("an altered literal") {
    Program bad = r.good;
    bad.ops[r.op_named("/mul_.0")].args[1] = 3;
    CHECK(r.first_difference(bad) == "/mul_.0");
    bad = r.good;
    bad.ops[r.op_named("/lerp_.0")].args[2] = 0.5;
    CHECK(r.first_difference(bad) == "/lerp_.0");
  }
  SUBCASE("another operator") {
    Program bad = r.good;
    bad.ops[r.op_named("/add_.0")].name = "aten::sub_.Tensor";
    CHECK(r.first_difference(bad) == "/add_.0");
  }
  SUBCASE("an op left out: its in-place result is missed by the next reader") {
    Program bad = r.good;
    const size_t dropped = r.op_named("/add_.0");
    bad.ops.erase(bad.ops.begin() + static_cast<std::ptrdiff_t>(dropped));
    for (Boundary& boundary : bad.boundaries)
      if (boundary.position > static_cast<int>(dropped)) --boundary.position;
    for (Leaf& leaf : bad.leaves)
      if (leaf.position > static_cast<int>(dropped)) --leaf.position;
    CHECK(r.first_difference(bad) == "/add_.0");
  }
}

TEST_CASE("trace: a flipped bit in a weight moves all that follows, in a stored result only that result") {
  const InPlace r;
  if (!other_kernels(r.dump.provenance()).empty()) return;
  ReplayOptions options;
  for (const Leaf& leaf : r.good.leaves)
    if (!leaf.names.empty() && leaf.names[0] == "weights/linear.weight") {
      at::Tensor weight = r.dump.value(leaf.value.key);
      weight.view(at::kInt)[0][0].bitwise_xor_(1 << 20);
      options.given[leaf.value.id] = weight;
    }
  REQUIRE(options.given.size() == 1);
  const auto found = differing(r.dump, r.good, options);
  REQUIRE_FALSE(found.empty());
  CHECK(r.good.boundaries[found.front()].path == "linear/addmm.0");
  Program bad = r.good;  // the stored result of another op in its place
  bad.boundaries[*r.good.find("linear")].value.key = r.good.boundaries[*r.good.find("/lerp_.0")].value.key;
  CHECK(differing(r.dump, bad, {}) == std::vector<size_t>{*r.good.find("linear")});
}

TEST_CASE("trace: coverage follows the values, not the order") {
  const Dump dump(path_of({"tests/data/gpt2.h5", 0}));
  const Program program = load_program(dump);
  std::vector<bool> marked(program.boundaries.size());
  CHECK(program.covered_by(marked) == marked);
  const size_t first = *program.find("", 0), middle = *program.find("transformer.h.0.mlp", 1);
  marked[middle] = true;
  const auto covered = program.covered_by(marked);
  CHECK(covered[middle]);
  CHECK(covered[*program.find("transformer.h.0.ln_2", 1)]);
  CHECK(covered[*program.find("transformer.h.0.attn.c_attn", 0)]);  // through the KV cache of the call before
  CHECK_FALSE(covered[first]);                                      // the logits of the first call lead nowhere
  CHECK_FALSE(covered[*program.find("transformer.ln_f", 1)]);
  const auto ancestors = program.marked_ancestors(marked);
  CHECK(ancestors[*program.find("transformer.ln_f", 1)] == std::vector<size_t>{middle});
  CHECK(ancestors[first].empty());
}

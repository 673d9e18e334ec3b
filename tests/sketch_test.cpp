// Sketches: against an oracle that shares no code with them, what they estimate, what they name, and damaged files.
#include <ATen/Parallel.h>
#include <doctest/doctest.h>

#include <cmath>

#include "command.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "judge/sketches.hpp"
#include "measure/sketch.hpp"
#include "recording_file.hpp"

namespace parity {
namespace {

using testing::RecordingFile;
using testing::TemporaryFile;

// FORMAT.md's definition, number by number, in 128-bit arithmetic and long doubles.
std::vector<long double> oracle(const std::vector<long double>& numbers, int buckets) {
  using Wide = unsigned __int128;
  const Wide mask = (Wide{1} << 64) - 1;
  std::vector<long double> sums(buckets);
  for (size_t i = 0; i < numbers.size(); ++i) {
    Wide z = (Wide{i} * Wide{0x9E3779B97F4A7C15ULL} + Wide{0x7061726974792D31ULL}) & mask;
    z = ((z ^ (z >> 30)) * Wide{0xBF58476D1CE4E5B9ULL}) & mask;
    z = ((z ^ (z >> 27)) * Wide{0x94D049BB133111EBULL}) & mask;
    z = z ^ (z >> 31);
    const auto bucket = static_cast<size_t>((z >> 51) % static_cast<unsigned>(buckets));
    if (std::isfinite(numbers[i])) sums[bucket] += ((z >> 63) & 1) ? -numbers[i] : numbers[i];
  }
  return sums;
}

std::vector<long double> numbers_of(const at::Tensor& tensor) {
  at::Tensor t = tensor.is_complex() ? at::view_as_real(tensor.contiguous()) : tensor;
  t = t.to(at::kFloat8_e4m3fn == t.scalar_type() ? at::kFloat : t.scalar_type()).to(at::kDouble).contiguous().flatten();
  const double* x = t.const_data_ptr<double>();
  return {x, x + t.numel()};
}

at::Tensor random(at::IntArrayRef shape, uint64_t seed) {
  at::manual_seed(seed);
  return at::randn(shape, at::kDouble);
}

SketchDifference differ(const at::Tensor& a, const at::Tensor& b, int64_t buckets = 512) {
  return difference(sketch_of(a, buckets), sketch_of(b, buckets));
}

OpResult judged(const at::Tensor& a, const at::Tensor& b, int64_t buckets = 512) {
  OpResult row;
  row.shape = a.sizes().vec();
  judge_sketches(row, {sketch_of(a, buckets), a.scalar_type()}, {sketch_of(b, buckets), b.scalar_type()}, 0);
  return row;
}

bool says(const OpResult& row, const std::string& text) { return row.diagnosis.find(text) != std::string::npos; }

}  // namespace

TEST_CASE("sketch: agrees with the definition in every dtype and layout") {
  const at::Tensor x = random({3, 50, 40}, 1);
  x.view(-1)[7] = NAN;
  x.view(-1)[70] = -INFINITY;
  for (const at::Tensor& t : {x, x.to(at::kFloat), x.to(at::kHalf), x.to(at::kBFloat16), x.to(at::kFloat8_e4m3fn),
                              x.transpose(0, 2), x.slice(1, 3, 40, 2), at::complex(x, x * 2).transpose(0, 1),
                              at::complex(x, x).conj(), x.nan_to_num().mul(1e3).to(at::kLong), x.gt(0)}) {
    CAPTURE(dtype_name(t.scalar_type()));
    for (const int buckets : {1, 16, 4096}) {
      const std::vector<long double> want = oracle(numbers_of(t.resolve_conj()), buckets);
      const Sketch got = sketch_of(t, buckets);
      REQUIRE(got.buckets.size() == want.size());
      double worst = 0;
      for (size_t b = 0; b < want.size(); ++b)
        worst = std::max(worst, static_cast<double>(std::abs(want[b] - got.buckets[b])));
      CHECK(worst <= 1e-14 * got.norm() + 1e-300);
    }
  }
  const Sketch s = sketch_of(x, 16);
  CHECK(s.count == 6000);
  CHECK(s.nan == 1);
  CHECK(s.inf == 1);
  CHECK(s.specials == sketch_hash(7) + 5 * sketch_hash(70));
}

TEST_CASE("sketch: statistics are exact, and know which narrower dtype would do") {
  const at::Tensor x = (random({999}, 2) * 0x1p-30).to(at::kBFloat16).to(at::kFloat);
  const Sketch s = sketch_of(x, 64);
  CHECK(s.min == x.min().item<double>());
  CHECK(s.max == x.max().item<double>());
  CHECK(s.sum == doctest::Approx(x.to(at::kDouble).sum().item<double>()).epsilon(1e-13));
  CHECK(s.norm() == doctest::Approx(x.to(at::kDouble).norm().item<double>()).epsilon(1e-13));
  REQUIRE(s.fits.size() == 1);
  CHECK(dtype_name(s.fits[0]) == "bfloat16");
  CHECK(sketch_of(at::zeros({5}), 4).zero == 5);
  CHECK(sketch_of(at::empty({0}), 4).count == 0);
}

TEST_CASE("sketch: any thread count gives the same digits") {
  const at::Tensor x = random({3'000'000}, 3);
  const int before = at::get_num_threads();
  at::set_num_threads(1);
  const Sketch one = sketch_of(x, 4096);
  at::set_num_threads(3);
  const Sketch three = sketch_of(x, 4096);
  at::set_num_threads(before);
  CHECK(one.buckets == three.buckets);
  CHECK(one.sum_squares == three.sum_squares);
}

TEST_CASE("sketch: fewer buckets by folding") {
  const at::Tensor x = random({5000}, 4);
  const std::vector<double> many = folded(sketch_of(x, 1024).buckets, 32), few = sketch_of(x, 32).buckets;
  for (size_t b = 0; b < few.size(); ++b) CHECK(many[b] == doctest::Approx(few[b]).epsilon(1e-12));
  CHECK(differ(x, x * 1.01, 512).rel_l2 == doctest::Approx(.01).epsilon(.13));
  CHECK(difference(sketch_of(x, 1024), sketch_of(x, 64)).norm < 1e-12);
}

TEST_CASE("sketch: relative L2 from 1 to 1e-13, within its stated error") {
  const at::Tensor x = random({400, 300}, 5);
  int beyond = 0, all = 0;
  for (double size = 1; size > 1e-13; size /= 10)
    for (uint64_t seed = 6; seed < 16; ++seed) {
      const at::Tensor y = x + size * random({400, 300}, seed);
      const double exact = ((y - x).norm() / x.norm()).item<double>();
      const SketchDifference d = differ(x, y);
      CHECK(std::abs(d.rel_l2 / exact - 1) < 5 * d.standard_error + d.floor / exact);
      beyond += std::abs(d.rel_l2 / exact - 1) > 2 * d.standard_error;
      ++all;
    }
  CHECK(beyond < all / 10);  // 5 % expected
  CHECK(differ(x, x).norm == 0);
  CHECK(differ(x, x).floor < 1e-14);
}

TEST_CASE("sketch: sees one wrong element, one row, an exchange, a transposition") {
  const at::Tensor x = random({120, 100}, 7).to(at::kFloat);
  at::Tensor one = x.to(at::kBFloat16);
  one[17][3] += .5;  // relative L2 0.0046: as a whole less than two roundings
  CHECK(judged(x.to(at::kBFloat16), one).verdict == Verdict::inconclusive);
  CHECK(says(judged(x.to(at::kBFloat16), one), "about 1 of 12000 numbers differ"));
  at::Tensor row = x.clone();
  row[17] = x[18];
  CHECK(says(judged(x, row), "all in index 17 of axis 0"));
  CHECK(judged(x, row).verdict == Verdict::fail);
  at::Tensor column = x.clone();
  column.select(1, 42).mul_(-1);
  CHECK(says(judged(x, column), "all in index 42 of axis 1"));
  CHECK(says(judged(x, x.t().reshape({120, 100})), "the same numbers at other places"));
  CHECK(says(judged(x, x.roll(1, 0)), "the same numbers at other places"));
  CHECK(judged(x, x.roll(1, 0)).verdict == Verdict::fail);
}

TEST_CASE("sketch: names a sign, a gain, an offset") {
  const at::Tensor x = random({120, 100}, 8).to(at::kFloat);
  CHECK(says(judged(x, -x), "the other sign"));
  CHECK(says(judged(x, x * 1.5), "1.5 times the reference"));
  CHECK(says(judged(x, x + 3), "a constant 3 is added"));
  for (const at::Tensor& y : {-x, x * 1.5, x + 3}) CHECK(judged(x, y).verdict == Verdict::fail);
  const OpResult other = judged(x, random({120, 100}, 9).to(at::kFloat));
  CHECK(other.verdict == Verdict::fail);
  for (const std::string name : {"sign", "times", "constant", "numbers differ"}) CHECK_FALSE(says(other, name));
}

TEST_CASE("sketch: verdicts as for whole tensors, and a band of doubt") {
  const at::Tensor x = random({300, 100}, 10).to(at::kFloat), noise = random({300, 100}, 11).to(at::kFloat);
  const auto verdict = [&](double size) { return judged(x, x + size * noise).verdict; };
  CHECK(judged(x, x).verdict == Verdict::pass);
  CHECK(verdict(5e-8) == Verdict::pass);
  CHECK(verdict(1e-6) == Verdict::inconclusive);
  CHECK(verdict(6.2e-5) == Verdict::inconclusive);  // just above the limit of a certain fault
  CHECK(verdict(1e-4) == Verdict::fail);
  CHECK(judged(x, x.to(at::kBFloat16)).gate == Gate::dtype_path);
  CHECK(judged(x.to(at::kBFloat16), x.to(at::kBFloat16).to(at::kFloat)).verdict == Verdict::pass);
  at::Tensor flat = at::full({900}, 2.F);
  flat[3] = std::nextafter(2.F, 3.F);
  CHECK(judged(at::full({900}, 2.F), flat).verdict == Verdict::untrusted);
  CHECK(judged(at::empty({0, 4}), at::empty({0, 4})).verdict == Verdict::untrusted);
  const at::Tensor integers = (x * 10).to(at::kLong);
  CHECK(judged(integers, integers).verdict == Verdict::pass);
  at::Tensor off = integers.clone();
  off[3][3] += 1;
  CHECK(judged(integers, off).verdict == Verdict::fail);
}

TEST_CASE("sketch: NaN at the same places passes, at others fails") {
  at::Tensor x = random({300, 100}, 12).to(at::kFloat), y = x.clone();
  x[5][5] = NAN;
  y[5][5] = NAN;
  CHECK(judged(x, y).verdict == Verdict::pass);
  y[5][5] = INFINITY;
  CHECK(judged(x, y).verdict == Verdict::fail);
  y = x.clone();
  y[5][5] = 0;
  y[5][6] = NAN;
  CHECK(says(judged(x, y), "NaN or Inf at other places"));
}

namespace {

struct Broken {
  std::string what, expected;
  std::function<void(nlohmann::json&, at::Tensor&)> change;
};

void write(const std::filesystem::path& path, const std::function<void(nlohmann::json&, at::Tensor&)>& change = {}) {
  const at::Tensor x = random({20, 100}, 13);
  const Sketch s = sketch_of(x, 512);
  at::Tensor buckets = at::empty({512}, at::kDouble);
  std::copy(s.buckets.begin(), s.buckets.end(), buckets.mutable_data_ptr<double>());
  nlohmann::json sketch{{"version", 1},
                        {"k", "0"},
                        {"count", s.count},
                        {"nan", 0},
                        {"inf", 0},
                        {"zero", 0},
                        {"sum", s.sum},
                        {"sum_squares", s.sum_squares},
                        {"min", s.min},
                        {"max", s.max},
                        {"specials", "0000000000000000"},
                        {"fits", nlohmann::json::array()}};
  if (change) change(sketch, buckets);
  RecordingFile file(path);
  file.attribute("level", "sketch");
  file.value("0", buckets);
  nlohmann::json event = testing::value_json(0, x);
  event.update({{"e", "point"}, {"path", "a"}, {"call", 0}, {"role", "output"}, {"sketch", sketch}});
  file.event(event);
  file.close();
}

}  // namespace

TEST_CASE("sketch: a good file compares and verifies, a damaged one is refused in one line") {
  const TemporaryFile good("good.h5"), bad("bad.h5");
  write(good.path());
  const std::string both = "'" + good.path().string() + "' '" + bad.path().string() + "'";
  CHECK(test::parity_check("compare '" + good.path().string() + "' '" + good.path().string() + "'").status == 0);
  CHECK(test::parity_check("inspect --verify '" + good.path().string() + "'").status == 0);
  const std::vector<Broken> cases{
      {"another size", "power of two", [](auto&, at::Tensor& b) { b = b.slice(0, 0, 500).clone(); }},
      {"two axes", "power of two",
       [](auto&, at::Tensor& b) {
         b = b.view({2, 256});
       }},
      {"another type", "power of two", [](auto&, at::Tensor& b) { b = b.to(at::kFloat); }},
      {"too many", "power of two", [](auto&, at::Tensor& b) { b = at::zeros({8192}, at::kDouble); }},
      {"NaN", "NaN", [](auto&, at::Tensor& b) { b[3] = NAN; }},
      {"version", "version 2", [](nlohmann::json& s, auto&) { s["version"] = 2; }},
      {"no version", "version null", [](nlohmann::json& s, auto&) { s.erase("version"); }},
      {"no value", "not stored", [](nlohmann::json& s, auto&) { s["k"] = "9"; }},
      {"count", "the shape has 2000", [](nlohmann::json& s, auto&) { s["count"] = 1999; }},
      {"counts", "add up", [](nlohmann::json& s, auto&) { s["nan"] = 2001; }},
      {"negative", "no count", [](nlohmann::json& s, auto&) { s["zero"] = -1; }},
      {"text", "'sum' is no number", [](nlohmann::json& s, auto&) { s["sum"] = "1"; }},
      {"specials", "hexadecimal", [](nlohmann::json& s, auto&) { s["specials"] = "xyz"; }},
      {"part", "add up the recordings of all ranks",
       [](nlohmann::json& s, auto&) { s["part"] = nlohmann::json::object(); }},
      {"no object", "not an object", [](nlohmann::json& s, auto&) { s = 3; }}};
  for (const Broken& broken : cases) {
    CAPTURE(broken.what);
    write(bad.path(), broken.change);
    for (const std::string& command : {"compare " + both, "inspect '" + bad.path().string() + "'",
                                       "inspect --verify '" + bad.path().string() + "'"}) {
      const auto done = test::parity_check(command);
      CHECK(done.status == 2);
      CHECK(done.err.find(broken.expected) != std::string::npos);
      CHECK(test::lines(done.err) == 1);
      CHECK(done.out.empty());
    }
  }
  write(bad.path(), [](nlohmann::json&, at::Tensor& b) { b.mul_(3); });  // well-formed, of another tensor
  CHECK(test::parity_check("inspect --verify --quiet '" + bad.path().string() + "'").status == 1);
}

TEST_CASE("sketch: paths and blame need values") {
  const TemporaryFile good("good.h5");
  write(good.path());
  const auto done = test::parity_check("paths " + test::reference_dump("selftest/gpt2.fp32.h5").string() + " '" +
                                       good.path().string() + "'");
  CHECK(done.status == 2);
  CHECK(done.err.find("holds sketches") != std::string::npos);
}

}  // namespace parity

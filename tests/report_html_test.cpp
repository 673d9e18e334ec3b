// report.html: everything a report holds is in it, nothing a file says becomes markup, and 5,000 ops stay small. What a
// browser makes of it: tests/python/test_html_page.py.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/sha.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/statistics.hpp"
#include "report/causes.hpp"
#include "report/environment.hpp"
#include "report/limit_use.hpp"
#include "report/sink.hpp"
#include "report/whole_program.hpp"
#include "report_sample.hpp"

namespace parity::test {
namespace {

using nlohmann::json;

std::string page_of(const Report& report) {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("parity-page-{}.html", getpid());
  write_html(report, file);
  std::ifstream stream(file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(file);
  return text;
}

std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const size_t from = text.find(begin);
  REQUIRE(from != std::string::npos);
  const size_t to = text.find(end, from + begin.size());
  REQUIRE(to != std::string::npos);
  return text.substr(from + begin.size(), to - from - begin.size());
}

json data_of(const std::string& page) {
  return json::parse(between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

// The row's text in the column `name`.
std::string cell(const json& data, const char* name, size_t row) {
  return data["strings"][data["ops"][name][row].get<size_t>()];
}

std::string base64_sha256(const std::string& text) {
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bits, out;
  for (const unsigned char byte : digest)
    for (int k = 7; k >= 0; --k) bits += (byte >> k & 1) != 0 ? '1' : '0';
  while (bits.size() % 6 != 0) bits += '0';
  for (size_t i = 0; i < bits.size(); i += 6) out += digits[std::stoul(bits.substr(i, 6), nullptr, 2)];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

// 5,000 ops with every number there is; every `red`th red with explanations and worst elements.
Report report_of_5000(int red) {
  Report r = sample_report();
  const OpResult model = r.ops[2];
  r.ops.clear();
  for (int i = 0; i < 5000; ++i) {
    OpResult op = model;
    const double x = 1 + std::sin(i * 12.9898) / 3;
    op.index = i;
    op.path = op.candidate_path = fmt::format("transformer.blocks.{}.attention.processor.{}", i / 50, i % 50);
    op.rerun = fmt::format(
        "parity-check compare '/data/recordings/reference.bf16.h5' '/data/recordings/candidate.bf16.h5' --layer '{}'",
        op.path);
    for (std::optional<Stats>* side : {&op.forced, &op.free})
      for (const auto& s : kStatistics) (**side).*s.field = x * 1.23456789e-3 / (1 + (s.name == "max_ulp"));
    op.histogram = Histogram{1000 + i, -20 - i % 7, {}};
    for (int k = 0; k < 18; ++k) op.histogram->counts.push_back(int64_t{1} << (k + i % 3));
    op.limits = {
        {"candidate_error", 2.4e-3 * x, false,
         fmt::format("null {:.2g} x 1.35: error over the null's; one extra rounding anywhere gives 1.4 or more", x),
         1.3e-3 * x},
        {"bitwise_equal_share", .93 + i * 1e-6, true, "null 0.7 %: GEMMs and norms flip under 2 %", .96}};
    op.verdict = i % red == 0 ? Verdict::fail : Verdict::pass;
    op.diagnosis = i % red == 0 ? fmt::format("missing rounding at {}: its error is {:.3g}", op.path, x) : "";
    if (i % red == 0)
      for (int k = 0; k < 8; ++k) {
        op.explanations.push_back({"missing rounding", fmt::format("mul.{} kept wide", k), op.path, Gate::dtype_path, x,
                                   5 * x, .9 * x, .1 * x, .01 * x, .5 * x});
        op.worst.push_back({{1, i, k}, std::sin(i + k), std::sin(i + k) * 1.01});
      }
    r.ops.push_back(std::move(op));
  }
  return r;
}

}  // namespace

TEST_CASE("report html: verdict, every row, its numbers, limits and texts") {
  Report report = sample_report();
  report.ops[2].histogram = Histogram{7, -3, {1, 2, 3}};
  report.ops[2].worst = {{{0, 3, 17}, 1.25, -0.0}, {{0, 0, 1}, 2, NAN}};
  report.ops[2].source = "modeling_llama.py:312 in forward";
  report.ops[2].explanations = {
      {"missing rounding", "mul kept wide", "", Gate::dtype_path, .97, 6.5, .99, .01, .02, .5}};
  report.dtype_paths = {{"blocks.0.attn2", "port", "blocks.0.attn2: reference: a in fp32; port: b", {{"b", .9, 1e-3}}}};
  const json data = data_of(page_of(report));
  CHECK(data["verdict"] == "fail");
  CHECK(data["headline"].get<std::string>().starts_with("FAIL: "));
  CHECK(data["first"] == 2);
  REQUIRE(data["ops"]["n"] == report.ops.size());
  for (size_t i = 0; i < report.ops.size(); ++i) {
    const OpResult& op = report.ops[i];
    CHECK(cell(data, "path", i) == op.path);
    CHECK(cell(data, "verdict", i) == verdict_name(op.verdict));
    CHECK(cell(data, "diagnosis", i) == op.diagnosis);
    const json& error = data["ops"]["forced"]["rel_l2"][i];
    CHECK(error.is_null() == !op.forced);
    if (op.forced) CHECK(std::abs(error.get<double>() - *op.forced->rel_l2) <= 1e-5 * *op.forced->rel_l2);
    CHECK(data["ops"]["limits"][i].size() == 5 * op.limits.size());
  }
  const json& ops = data["ops"];
  CHECK(ops["histogram"][2] == json{7, -3, 1, 2, 3});
  CHECK(ops["worst"][2][0] == json{{0, 3, 17}, 1.25, -0.0});
  CHECK(ops["worst"][2][1][2] == "nan");
  CHECK(cell(data, "source", 2) == "modeling_llama.py:312 in forward");
  CHECK(data["strings"][ops["explanations"][2][0].get<size_t>()] == "missing rounding");
  CHECK(ops["explanations"][2][4] == 6.5);
  CHECK(data["casts"][0]["tried"][0] == json{"b", .9, 1e-3});
  CHECK(data["coverage"][0]["uncovered_paths"] == json{"blocks.1.norm2"});
  CHECK(data["coverage"][0]["unmatched"] == json{"extra"});
}

TEST_CASE("report html: the environment is the one of every other report file") {
  Report r = sample_report();
  r.reference.details = {{"cpu", "Example CPU"}, {"cpu_capability", "AVX512"}, {"config", {{"layers", 2}}}};
  const json shown = data_of(page_of(r))["environment"];
  const Environment machines = environment(r);
  CHECK(shown["columns"] == json(machines.columns));
  CHECK(shown["differing"] == differing_text(machines));
  REQUIRE(shown["rows"].size() == machines.rows.size());
  for (size_t i = 0; i < machines.rows.size(); ++i) {
    CHECK(shown["rows"][i] == json{machines.rows[i].what, machines.rows[i].values, machines.rows[i].differs});
  }
  CHECK(shown["sides"][0] == json{"model", {"SampleModel", "wan"}, false});
  CHECK(shown["others"][0] == json{"config.layers", {"2", ""}, false});
}

TEST_CASE("report html: causes, what to run next, and the program as a whole") {
  Report r = sample_report();
  WholeProgram whole;
  whole.asked = .001, whole.error = .01, whole.valid_error = .02;
  whole.steps = {{"blocks.0.attn2", "attention", "a.py:3", .5, 1.5, .005, .0051}};
  r.whole = whole;
  const json data = data_of(page_of(r)), document = to_json(r);
  CHECK(data["next"] == document["next"]);
  CHECK(data["whole"] == document["whole_program"]);
  CHECK(data["whole_lines"].size() == whole_program_lines(whole).size());
  CHECK(data["discriminator"].is_null());
  REQUIRE(data["causes"]["shown"].size() == document["findings"].size());
  const json& first = data["causes"]["shown"][0];
  CHECK(first["rows"] == json{2});
  CHECK(first["title"] == cause_title(causes(r).front()));
  CHECK(first["broken"] == json(broken_limit_lines(r.ops[2])));
}

TEST_CASE("report html: as many causes as rows are cut, and it is said") {
  Report r = sample_report();
  const OpResult failing = r.ops[2];
  for (int i = 0; i < 1000; ++i) r.ops.push_back(failing), r.ops.back().kind = fmt::format("kind{}", i);
  const json causes = data_of(page_of(r))["causes"];
  CHECK(causes["all"] == 1006);
  CHECK(causes["shown"].size() == 200);
}

TEST_CASE("report html: a share just below 1 stays below 1") {
  Report report = sample_report();
  report.ops[0].forced->bitwise_equal_share = .9999998;
  CHECK(data_of(page_of(report))["ops"]["forced"]["bitwise_equal_share"][0] == .9999998);
}

TEST_CASE("report html: hostile texts are data, never markup") {
  Report report = sample_report(true);
  const std::string bad = "</script><script>alert(1)</script><!-- \xe2\x80\xae\x1b[31m\x01 @SCRIPT@ @DATA@";
  report.ops[0].path = report.ops[0].kind = report.ops[0].diagnosis = report.ops[0].source = bad;
  report.ops[0].rerun = fmt::format("parity-check run --layer '{}'", bad);
  report.command = bad;
  report.warnings = {bad};
  report.reference.model = report.reference.producer = bad;
  report.reference.details = {{bad, {{bad, bad}, {"list", {bad}}}}};
  report.coverage[bad].unmatched_candidates = {bad};
  report.dtype_paths = {{bad, bad, bad, {{bad, 1, 0}}}};
  const std::string page = page_of(report), benign = page_of(sample_report());
  CHECK(count(page, "<script") == 2);
  CHECK(count(page, "<script") == count(benign, "<script"));
  CHECK(count(page, "</script") == count(benign, "</script"));
  CHECK(count(page, "<!--") == 0);
  for (const char* raw : {"\x1b", "\x01", "\x1f", "\xe2\x80\xae", "\xff", "<img"}) {
    CAPTURE(raw);
    CHECK(count(page, raw) == count(benign, raw));
  }
  const json data = data_of(page);
  CHECK(cell(data, "path", 0).starts_with("</script><script>alert(1)"));
  CHECK(cell(data, "path", 0).find("\\u202e\\x1b[31m\\x01") != std::string::npos);
  CHECK(between(page, "<title>", "</title>").find("&lt;/script&gt;") != std::string::npos);
}

TEST_CASE("report html: its policy allows its own script alone, and no network") {
  const std::string page = page_of(sample_report());
  const std::string policy = between(page, "Content-Security-Policy\" content=\"", "\">");
  CHECK(policy.starts_with("default-src 'none'; script-src 'sha256-"));
  CHECK(between(policy, "'sha256-", "'") == base64_sha256(between(page, "</script>\n<script>", "</script>")));
  CHECK(policy.find("http") == std::string::npos);
  CHECK(count(page, "src=\"") == 0);
  CHECK(count(page, "url(") == 0);
}

TEST_CASE("report html: 5,000 ops with every number stay below 5 MB") {
  for (const int red : {10, 1}) {
    const std::string page = page_of(report_of_5000(red));
    MESSAGE("every ", red, "th red: ", page.size(), " bytes");
    CHECK(page.size() < 5'000'000);
    const json data = data_of(page);
    CHECK(data["ops"]["n"] == 5000);
    CHECK(data["ops"]["explanations"][0].size() == 9 * data["most"].get<size_t>());
    CHECK(data["ops"]["worst"][0].size() == data["most"].get<size_t>());
    CHECK((data["most"] == 8) == (red == 10));
  }
}

TEST_CASE("report html: a file that cannot be written is an error") {
  CHECK_THROWS(write_html(sample_report(), "/proc/no-such-folder/report.html"));
}

}  // namespace parity::test

#include <doctest/doctest.h>

#include <algorithm>

#include "report/markup.hpp"
#include "report/sink.hpp"
#include "report/summary.hpp"
#include "report_golden.hpp"
#include "report_sample.hpp"

using namespace parity;

TEST_CASE("report: paths of the model itself say what they are") {
  const auto name = [](const char* path, int call = 0) {
    OpResult op;
    op.path = path;
    op.call = call;
    return path_name(op);
  };
  CHECK(name("") == "(the model's result)");
  CHECK(name("[1]") == "[1] (value 2 of those that the model returns)");
  CHECK(name("[12]", 3) == "[12] (value 13 of those that the model returns) call 3");
  CHECK(name("/add.0") == "/add.0 (an op of the model itself, in none of its modules)");
  CHECK(name("~/add.0") == "~/add.0 (an op outside the model)");
  for (const char* plain : {"h.0[1]", "h.0/add.0", "[", "[]", "[a]", "[1]x", "[99999999999999999999]"})
    CHECK(name(plain) == plain);
}

TEST_CASE("report: the console table is what it was") {
  test::check_golden("console.txt", console_summary(test::sample_report(), false));
  test::check_golden("console_colour.txt", console_summary(test::sample_report(), true));
}

TEST_CASE("report: nothing compared is said so, and is not green") {
  const std::string text = console_summary(Report{}, false);
  CHECK(text.find("INCONCLUSIVE: nothing was compared") == 0);
  CHECK(text.find("PASS") == std::string::npos);
}

TEST_CASE("report: what a pass promises stands in words") {
  Report r = test::sample_report();
  CHECK(console_summary(r, false).find("Power:") == std::string::npos);
  r.ops[0].limits = {{"candidate_error", .004, false, "null"}};
  r.ops[1].limits = {{"candidate_error", .02, false, "null"}};
  r.coverage["one"].directions = 94;
  r.coverage["one"].sigma = 4.7;
  r.coverage["one"].false_alarms = 1e-4;
  const std::string text = console_summary(r, false);
  CHECK(text.find("any error above 0.02 of the norm fails by its size alone (median of 2") != std::string::npos);
  CHECK(text.find("0.02 at " + r.ops[1].path) != std::string::npos);
  CHECK(text.find("94 named changes projected on, each believed from 4.7 sigma on") != std::string::npos);
}

TEST_CASE("report: of many ops that are not replayed a few stand in the text") {
  Coverage c;
  for (int i = 0; i < 27; ++i)
    c.opaque.push_back("experts/nonzero." + std::to_string(i) + " (aten::nonzero): data-dependent");
  CHECK(coverage_line(c).find(
            "; 27 ops not replayed, recorded values used: experts/nonzero.0 (aten::nonzero): data-dependent") !=
        std::string::npos);
  CHECK(coverage_line(c).find("nonzero.2 (aten::nonzero): data-dependent, …") != std::string::npos);
  CHECK(coverage_line(c).find("nonzero.3") == std::string::npos);
}

TEST_CASE("report: names from files cannot move the cursor or forge a line") {
  const std::string text = console_summary(test::sample_report(true), false);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find('\xff') == std::string::npos);
  CHECK(text.find("\\x1b[31m\\xff") != std::string::npos);
  CHECK(text.find("@everyone`\n") == std::string::npos);
}

TEST_CASE("report: many failures are cut on the console, and it says so") {
  Report r = test::sample_report();
  const OpResult failing = r.ops[2];
  for (int i = 0; i < 100; ++i) r.ops.push_back(failing);
  const std::string one = console_summary(r, false);  // of one cause: one finding
  CHECK(one.find("101 rows, gate dtype_path, attention: a rounding is placed differently") != std::string::npos);
  CHECK(one.find(" and 97 more\n") != std::string::npos);
  for (int i = 0; i < 100; ++i) r.ops[r.ops.size() - 100 + static_cast<size_t>(i)].kind = "kind" + std::to_string(i);
  const std::string many = console_summary(r, false);
  CHECK(many.find("… and 98 more causes") != std::string::npos);
  CHECK(std::count(many.begin(), many.end(), '\n') < 80);
}

TEST_CASE("report: plain text keeps letters and shows what is invisible") {
  CHECK(plain("größe αβ 模型 🙂") == "größe αβ 模型 🙂");
  CHECK(plain("a\nb\tc\x7f") == "a\\nb\\x09c\\x7f");
  CHECK(plain("\xc3\x28 \xed\xa0\x80 \xc0\xaf") == "\\xc3( \\xed\\xa0\\x80 \\xc0\\xaf");  // broken, surrogate, overlong
  CHECK(plain("abc\u202edcb") == "abc\\u202edcb");                                        // right-to-left override
  CHECK(plain("\xc2\x9b"
              "31m") == "\\x9b31m");  // the one-character CSI
}

TEST_CASE("report: markup in text stays text") {
  CHECK(xml("<a b='c'>&\"") == "&lt;a b=&apos;c&apos;&gt;&amp;&quot;");
  CHECK(markdown("a|b *c* _d_ snake_case [x](y) <i> `q`") ==
        "a\\|b \\*c\\* \\_d\\_ snake_case \\[x\\](y) &lt;i&gt; \\`q\\`");
  CHECK(markdown("@you #1 http://x") == "@<!-- -->you #<!-- -->1 http:<!-- -->//x");
  CHECK(markdown_code("blocks.0.norm1/native_layer_norm.2") == "`blocks.0.norm1/native_layer_norm.2`");
  CHECK(markdown_code("a|b`c<d>") == "<code>a&#124;b&#96;c&#60;d&#62;</code>");
  CHECK(markdown_code("") == "<code>&quot;&quot;</code>");
}

TEST_CASE("report: columns are padded by characters") {
  CHECK(pad_right("–", 3) == "–  ");
  CHECK(pad_left("– %", 4) == " – %");
  CHECK(number(std::nullopt) == "–");
  CHECK(number(1.0 / 3) == "0.333");
  CHECK(share(.41) == "41 %");
  CHECK(share(1.0) == "100 %");
  CHECK(share(1 - 1e-9) == "<100 %");  // one element in a billion is not none
  CHECK(shape_text({1, 12, 64}) == "1×12×64");
}

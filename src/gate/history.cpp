// x = the reports in order of their dates. Above: the largest share of its limit that any row uses, by dtype; 1 is the
// limit, from there on a row fails. In the middle: the largest free-running error. Below: how many rows failed or were
// not decided. Colours of Okabe and Ito (2008), told apart by shape, too.
#include "gate/history.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "gate/numbers.hpp"
#include "report/gnuplot.hpp"
#include "report/json_values.hpp"

namespace parity {
namespace {

constexpr const char* kHistoryTerminal =
    "set terminal svg size 900,820 noenhanced font 'DejaVu Sans,Verdana,sans-serif,15' background '#ffffff'";
constexpr size_t kDates = 12;  // labels below the axis

struct Pen {
  const char* colour;
  int shape;
};
constexpr std::array kPens{Pen{"#0072b2", 7}, Pen{"#e69f00", 5}, Pen{"#009e73", 9}, Pen{"#cc79a7", 13},
                           Pen{"#56b4e9", 11}};

/// Letters and digits that cannot end a string of gnuplot or call a command.
std::string gnuplot_text(const std::string& text) {
  std::string out = "'";
  for (const char c : text)
    out += std::isalnum(static_cast<unsigned char>(c)) || std::string_view(" .:-_+").find(c) != std::string_view::npos
               ? c
               : '?';
  return out + "'";
}

using Series = std::map<std::string, double> Moment::*;

std::vector<std::string> dtypes_of(const std::vector<Moment>& moments, Series series) {
  std::set<std::string> names;
  for (const Moment& m : moments)
    for (const auto& [name, value] : m.*series) names.insert(name);
  return {names.begin(), names.end()};
}

/// Zeros are drawn on a line of their own below the smallest number: exact is not small.
struct Decades {
  double floor = 0, low = 0, high = 0;
};

Decades decades_of(const std::vector<Moment>& moments, Series series, double least_high) {
  double low = 0, high = least_high;
  for (const Moment& m : moments)
    for (const auto& [name, value] : m.*series)
      if (value > 0) low = low == 0 ? value : std::min(low, value), high = std::max(high, value);
  if (high == 0) high = 1;  // exact everywhere
  if (low == 0) low = high / 100;
  const double bottom = std::floor(std::log10(low)) - 1;
  return {std::pow(10, bottom), std::pow(10, bottom) / 2, 2 * std::pow(10, std::ceil(std::log10(high)))};
}

std::string date_ticks(const std::vector<Moment>& moments, bool named) {
  std::vector<std::string> out;
  const size_t gap = (moments.size() + kDates - 1) / kDates;
  for (size_t x = 0; x < moments.size(); x += std::max<size_t>(gap, 1))
    out.push_back(fmt::format("{} {}", named ? gnuplot_text(moments[x].date) : "''", x));
  return fmt::format("{}", fmt::join(out, ", "));
}

std::string error_panel(const std::vector<Moment>& moments, Series series, const char* name, const char* label,
                        bool limit) {
  const Decades range = decades_of(moments, series, limit ? 1 : 0);
  const auto dtypes = dtypes_of(moments, series);
  std::string data, plots;
  for (size_t i = 0; i < dtypes.size(); ++i) {
    data += fmt::format("${}_{} << EOD\n", name, i);
    for (size_t x = 0; x < moments.size(); ++x)
      if (const auto found = (moments[x].*series).find(dtypes[i]); found != (moments[x].*series).end())
        data += fmt::format("{} {:.6g}\n", x, found->second > 0 ? found->second : range.floor);
    data += "EOD\n";
    const Pen& pen = kPens[i % kPens.size()];
    plots += fmt::format("{}${}_{} with linespoints linewidth 1.5 pointtype {} pointsize 0.8 linecolor '{}' title {}",
                         i == 0 ? "" : ", ", name, i, pen.shape, pen.colour, gnuplot_text(dtypes[i]));
  }
  if (dtypes.empty()) plots = "NaN notitle";
  std::string out =
      data + fmt::format("set logscale y\nset format y '1e%T'\nset yrange [{:.4g}:{:.4g}]\nset ylabel '{}'\n",
                         range.low, range.high, label);
  out += fmt::format("set ytics {:.4g},{}\nset ytics add ('0' {:.4g})\n", range.floor * 10,
                     std::log10(range.high / range.low) > 6 ? 100 : 10, range.floor);
  out += limit ? "unset arrow\nset arrow from graph 0, first 1 to graph 1, first 1 nohead linewidth 2 linecolor "
                 "'#c40000'\nset label 1 'limit' at graph 0.995, first 1 right offset 0,0.6 textcolor '#c40000'\n"
               : "unset arrow\nunset label 1\nunset key\n";
  return out + "plot " + plots + "\n";
}

std::string verdict_panel(const std::vector<Moment>& moments) {
  std::string failed, open, passed;
  int64_t most = 1;
  for (size_t x = 0; x < moments.size(); ++x) {
    const Moment& m = moments[x];
    most = std::max(most, m.failed + m.open);
    if (m.failed > 0) failed += fmt::format("{} {}\n", x, m.failed);
    if (m.open > 0) open += fmt::format("{} {}\n", x, m.failed + m.open);
    if (m.failed + m.open == 0) passed += fmt::format("{} 0\n", x);
  }
  std::string out, plots;
  const auto add = [&](const char* name, const std::string& points, const char* style) {
    if (points.empty()) return;
    out += fmt::format("${} << EOD\n{}EOD\n", name, points);
    plots += fmt::format("{}${} {}", plots.empty() ? "" : ", ", name, style);
  };
  add("open", open, "with boxes fillstyle solid linecolor '#e69f00' title 'not decided'");
  add("failed", failed, "with boxes fillstyle solid linecolor '#c40000' title 'failed'");
  add("passed", passed, "with points pointtype 7 pointsize 0.9 linecolor '#009e73' title 'all pass'");
  out +=
      "unset logscale y\nset format y '%g'\nset ytics autofreq\nset ylabel 'rows not green'\nset boxwidth 0.5\nset key "
      "inside top center horizontal\n";
  out += fmt::format("set yrange [{}:{}]\n", -static_cast<double>(most) / 12, static_cast<double>(most) * 4 / 3);
  return out + "plot " + (plots.empty() ? "NaN notitle" : plots) + "\n";
}

void raise(std::map<std::string, double>& to, const std::string& dtype, double value) {
  const auto [place, added] = to.emplace(dtype, value);
  if (!added) place->second = std::max(place->second, value);
}

}  // namespace

Moment moment_of(const Report& report, std::string file) {
  Moment m{std::move(file), report.date, overall(report), static_cast<int64_t>(report.ops.size()), 0, 0, {}, {}};
  for (const OpResult& op : report.ops) {
    m.failed += op.verdict == Verdict::fail || op.verdict == Verdict::shape;
    m.open += op.verdict != Verdict::pass && op.verdict != Verdict::fail && op.verdict != Verdict::shape;
    for (const Limit& limit : op.limits)
      if (const auto held = held_against(op, limit); held && held->limit > 0)
        raise(m.of_limit, op.dtype, held->value / held->limit);
    if (op.logic.rel_l2 && op.logic.limit > 0) raise(m.of_limit, op.dtype, *op.logic.rel_l2 / *op.logic.limit);
    if (op.free && op.free->rel_l2) raise(m.free, op.dtype, *op.free->rel_l2);
  }
  return m;
}

std::vector<Moment> history_of(std::vector<Moment> moments) {
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& a, const Moment& b) { return a.date < b.date; });
  return moments;
}

std::string history_script(const std::vector<Moment>& moments, const std::string& output) {
  std::string s = fmt::format(
      "{}\nset output {}\nset multiplot\nset border 3 linecolor '#444444'\nset tics nomirror "
      "textcolor '#222222'\nset mytics 1\nset grid ytics linecolor '#dddddd' linewidth 1\n",
      kHistoryTerminal, gnuplot_text(output));
  s += "set lmargin at screen 0.12\nset rmargin at screen 0.97\n";
  s += fmt::format("set xrange [-0.5:{}.5]\nset xtics ({}) scale 0.4\n", std::max<size_t>(moments.size(), 1) - 1,
                   date_ticks(moments, false));
  s += "set key outside top center horizontal Left reverse samplen 1.5\n";
  s += "set tmargin at screen 0.95\nset bmargin at screen 0.68\n";
  s += error_panel(moments, &Moment::of_limit, "limit", "worst row / its limit", true);
  s += "set tmargin at screen 0.61\nset bmargin at screen 0.40\n";
  s += error_panel(moments, &Moment::free, "free", "worst free relative L2", false);
  s += fmt::format("set xtics ({}) rotate by 35 right scale 0.4 font ',12'\n", date_ticks(moments, true));
  s += "set tmargin at screen 0.33\nset bmargin at screen 0.14\n";
  return s + verdict_panel(moments) + "unset multiplot\n";
}

std::string draw_history(const std::vector<Moment>& moments, const std::filesystem::path& folder) {
  return draw_gnuplot(folder, "history.svg",
                      [&](const std::string& output) { return history_script(moments, output); });
}

nlohmann::json history_json(const std::vector<Moment>& moments) {
  nlohmann::json list = nlohmann::json::array();
  for (const Moment& m : moments)
    list.push_back({{"file", plain(m.file)},
                    {"date", plain(m.date)},
                    {"verdict", verdict_name(m.verdict)},
                    {"rows", m.rows},
                    {"failed", m.failed},
                    {"undecided", m.open},
                    {"of_limit", m.of_limit},
                    {"free_rel_l2", m.free}});
  return {{"schema", "parity-history/1"}, {"reports", std::move(list)}};
}

}  // namespace parity

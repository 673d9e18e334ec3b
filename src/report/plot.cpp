// x = execution order with sparse module names; above relative L2, below the largest error over the mean activation,
// both logarithmic. Grey squares: what the reference itself rounds away, against fp64 on the same inputs. Blue circles:
// teacher-forced (the op's own error). Orange line: free-running (what has piled up). Colours of Okabe and Ito (2008),
// told apart by colour-blind readers and by shape; white ground, so that a dark page shows the same picture.
#include "report/plot.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>

#include "report/gnuplot.hpp"
#include "report/markup.hpp"
#include "report/sink.hpp"

namespace parity {
namespace {

constexpr size_t kLabels = 14;       // module names below the axis
constexpr size_t kLabelLength = 26;  // characters
constexpr const char* kTerminal =
    "set terminal svg size 900,760 noenhanced font 'DejaVu Sans,Verdana,sans-serif,16' background '#ffffff'";

/// A single-quoted gnuplot string that cannot end early or call a command, whatever the text: other characters become
/// '?'.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : plain(text))
    out += std::isalnum(static_cast<unsigned char>(c)) || (c & 0x80) || std::strchr(" ._/:,=+-()[]<>|", c) ? c : '?';
  return out + "'";
}

using Value = std::optional<double>;
Value relative(const std::optional<Stats>& s) { return s ? s->rel_l2 : std::nullopt; }
Value normalised(const std::optional<Stats>& s) { return s ? s->normalized_max : std::nullopt; }
/// What the reference itself rounded away at this op: the scale that an error is seen against.
Value rounding(const OpResult& op) { return op.oracle ? op.oracle->reference_error : std::nullopt; }

/// Zeros are drawn on a line two decades below the smallest error, so that "exact" and "small" look different.
struct Range {
  double floor = 1e-17, low = 3e-18, high = 1;
};

Range range_of(const std::vector<const OpResult*>& rows, Value (*of)(const std::optional<Stats>&)) {
  double low = 0, high = 0;
  for (const OpResult* op : rows)
    for (const Value v : {of(op->forced), of(op->free), of == relative ? rounding(*op) : Value()})
      if (v && *v > 0) low = low == 0 ? *v : std::min(low, *v), high = std::max(high, *v);
  if (high == 0) return {};
  const double bottom = std::floor(std::log10(low)) - 1;
  return {std::pow(10, bottom), std::pow(10, bottom - .5), std::pow(10, std::ceil(std::log10(high)) + .3)};
}

/// "blocks.12.attn1.to_q" -> "blocks.12": what a reader looks for along the axis.
std::string module_of(const std::string& path) {
  const size_t dot = path.find_first_of("./");
  if (dot == std::string::npos) return path;
  const size_t second = path.find_first_of("./", dot + 1);
  const bool numbered = dot + 1 < path.size() && std::isdigit(static_cast<unsigned char>(path[dot + 1]));
  return path.substr(0, numbered ? second : dot);
}

std::string shortened(const std::string& name) {
  if (name.empty()) return "root";
  return name.size() <= kLabelLength ? name : ".." + name.substr(name.size() - kLabelLength + 2);
}

/// Names where a module begins, at least a fourteenth of the axis apart.
std::string ticks(const std::vector<const OpResult*>& rows, bool named) {
  std::vector<std::string> out;
  const size_t gap = (rows.size() + kLabels - 1) / kLabels;
  std::string last;
  size_t next = 0;
  for (size_t x = 0; x < rows.size(); ++x) {
    const std::string module = module_of(rows[x]->path);
    const bool begins = x == 0 || module != last;
    last = module;
    if (!begins || x < next) continue;
    out.push_back(fmt::format("{} {}", named ? quoted(shortened(module)) : "''", x));
    next = x + gap;
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

/// Rows of "x y"; zeros at the floor; an empty line, which interrupts a curve, where numbers are absent.
template <class F>
std::string block(const char* name, const std::vector<const OpResult*>& rows, const Range& range, F value) {
  std::string out = fmt::format("${} << EOD\n", name);
  for (size_t x = 0; x < rows.size(); ++x)
    if (const Value v = value(*rows[x]); v && std::isfinite(*v))
      out += fmt::format("{} {:.6g}\n", x, *v > 0 ? *v : range.floor);
    else if (!out.ends_with("\n\n"))
      out += "\n";
  return out + "EOD\n";
}

bool failed(const OpResult& op) { return op.verdict == Verdict::fail || op.verdict == Verdict::shape; }

/// Where a failing op is marked: on its own error, or on the floor when it has none (another shape).
Value mark(const OpResult& op, Value (*of)(const std::optional<Stats>&)) {
  if (!failed(op)) return std::nullopt;
  const Value own = op.gate == Gate::propagation ? of(op.free) : of(op.forced);
  return own ? own : Value(0);
}

/// The name of the first op that fails on its own, beside its cross; towards the middle of the picture.
std::string first_failure(const std::vector<const OpResult*>& rows, const Range& range,
                          Value (*of)(const std::optional<Stats>&)) {
  for (size_t x = 0; x < rows.size(); ++x) {
    const OpResult& op = *rows[x];
    if (!failed(op) || op.gate == Gate::propagation) continue;
    const double y = mark(op, of).value_or(0);
    const bool right_half = 2 * x > rows.size();
    return fmt::format("set label 1 {} at {},{:.6g} {} offset character {},0.9 textcolor '#c40000'\n",
                       quoted(shortened(op.path)), x, y > 0 ? y : range.floor, right_half ? "right" : "left",
                       right_half ? 1 : -1);
  }
  return "";
}

std::string panel(const std::vector<const OpResult*>& rows, const char* name, const char* label,
                  Value (*of)(const std::optional<Stats>&), bool legend) {
  const Range range = range_of(rows, of);
  std::string out =
      block(fmt::format("{}_forced", name).c_str(), rows, range, [&](const OpResult& op) { return of(op.forced); });
  out += block(fmt::format("{}_free", name).c_str(), rows, range, [&](const OpResult& op) { return of(op.free); });
  const bool yardstick =
      of == relative && std::any_of(rows.begin(), rows.end(), [](const auto* op) { return rounding(*op).has_value(); });
  if (yardstick)
    out +=
        block(fmt::format("{}_rounding", name).c_str(), rows, range, [](const OpResult& op) { return rounding(op); });
  out += block(fmt::format("{}_failed", name).c_str(), rows, range, [&](const OpResult& op) { return mark(op, of); });
  out += fmt::format("set ylabel {}\nset yrange [{:.4g}:{:.4g}]\n", quoted(label), range.low, range.high);
  out += fmt::format(
      "unset arrow\nset arrow from graph 0, first {0:.4g} to graph 1, first {0:.4g} nohead dashtype 2 linewidth 1 "
      "linecolor '#777777'\n",
      range.floor);
  // The floor's own tick says 0; decades at and below it have none.
  out += fmt::format("set ytics {:.4g},{}\nset ytics add ('0' {:.4g})\n", range.floor * 10,
                     std::log10(range.high / range.low) > 9   ? 1000
                     : std::log10(range.high / range.low) > 5 ? 100
                                                              : 10,
                     range.floor);
  out += "unset label\n" + first_failure(rows, range, of);
  out += legend ? "set key outside top center horizontal Left reverse samplen 1.5\n" : "unset key\n";
  const std::string rounded = yardstick ? fmt::format(
                                              "${}_rounding with points pointtype 4 pointsize 0.5 linecolor '#999999' "
                                              "title 'reference to fp64', ",
                                              name)
                                        : "";
  const double size = rows.size() > 150 ? .35 : rows.size() > 60 ? .5 : .7;
  out += fmt::format(
      "plot {3}${0}_free with linespoints linewidth 1.5 pointtype 5 pointsize {1:.2f} linecolor '#e69f00' title "
      "'free-running', "
      "${0}_forced with points pointtype 7 pointsize {2:.2f} linecolor '#0072b2' title 'teacher-forced', "
      "${0}_failed with points pointtype 2 pointsize 1.6 linewidth 3 linecolor '#c40000' title 'fails'\n",
      name, size * .6, size, rounded);
  return out;
}

std::string slug(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
      out += c;
    else if (!out.empty() && out.back() != '-')
      out += '-';
  return out.substr(0, 60);
}

/// Nothing to see: no error anywhere, and no rounding to compare it with.
bool exact(const std::vector<const OpResult*>& rows) {
  const auto zero = [](const Value& v) { return !v || *v == 0; };
  return std::all_of(rows.begin(), rows.end(), [&](const auto* op) {
    return !failed(*op) && zero(relative(op->forced)) && zero(relative(op->free)) && zero(rounding(*op));
  });
}

struct Group {
  std::string title, file;
  std::vector<const OpResult*> rows;
};

std::vector<Group> groups(const Report& report) {
  std::vector<Group> out;
  for (const OpResult& op : report.ops) {
    const std::string title = op.reference.empty() ? op.dtype : fmt::format("{}, {}", op.reference, op.dtype);
    auto found = std::find_if(out.begin(), out.end(), [&](const Group& g) { return g.title == title; });
    if (found == out.end()) {
      const std::string file =
          fmt::format("error-{}{}.svg", out.empty() ? "" : fmt::format("{}-", out.size() + 1), slug(title));
      found = out.insert(out.end(), Group{title, file, {}});
    }
    found->rows.push_back(&op);
  }
  for (Group& g : out)
    std::stable_sort(g.rows.begin(), g.rows.end(), [](const auto* a, const auto* b) { return a->index < b->index; });
  std::erase_if(out, [](const Group& g) {
    return std::none_of(g.rows.begin(), g.rows.end(), [](const auto* op) { return op->forced || op->free; });
  });
  return out;
}

}  // namespace

std::string plot_script(const std::vector<const OpResult*>& rows, const std::string& terminal,
                        const std::string& output) {
  std::string s = fmt::format("{}\nset output {}\n", terminal, quoted(output));
  s += "set multiplot\nset logscale y\nset border 3 linecolor '#444444'\nset tics nomirror textcolor '#222222'\nset "
       "format y '1e%T'\nset mytics 1\n";
  s += "set grid ytics linecolor '#dddddd' linewidth 1\nset lmargin at screen 0.115\nset rmargin at screen 0.975\n";
  s += fmt::format("set xrange [-0.5:{}.5]\nset xtics ({}) scale 0.4\n", std::max<size_t>(rows.size(), 1) - 1,
                   ticks(rows, false));
  s += "set tmargin at screen 0.94\nset bmargin at screen 0.57\n";
  s += panel(rows, "upper", "relative L2", relative, true);
  s += fmt::format("set xtics ({}) rotate by 35 right scale 0.4 font ',13'\n", ticks(rows, true));
  s += "set tmargin at screen 0.53\nset bmargin at screen 0.16\n";
  s += panel(rows, "lower", "max |d| / mean |reference|", normalised, false);
  return s + "unset multiplot\n";
}

Plots draw_plots(const Report& report, const std::filesystem::path& folder) {
  Plots out;
  for (const Group& group : groups(report)) {
    if (exact(group.rows)) {
      out.exact.push_back(group.title);
      continue;
    }
    const std::string problem = draw_gnuplot(
        folder, group.file, [&](const std::string& output) { return plot_script(group.rows, kTerminal, output); });
    if (!problem.empty()) {
      out.problem = problem;
      break;
    }
    out.drawn.push_back({group.file, group.title, group.rows.front()->reference, group.rows.front()->dtype});
  }
  return out;
}

}  // namespace parity

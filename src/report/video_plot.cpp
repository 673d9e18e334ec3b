// Error over time and the histogram of differences, by gnuplot. PSNR above, SSIM below, over the frame number; frames
// without a PSNR (identical) leave a gap.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/gnuplot.hpp"
#include "report/video.hpp"

namespace parity {
namespace {

constexpr const char* kLook =
    "set border 3 linecolor '#444444'\nset tics nomirror textcolor '#222222'\nset grid ytics linecolor '#dddddd' "
    "linewidth 1\n"
    "set lmargin at screen 0.115\nset rmargin at screen 0.975\n";

std::string terminal(int height) {
  return fmt::format(
      "set terminal svg size 900,{} noenhanced font 'DejaVu Sans,Verdana,sans-serif,16' background '#ffffff'\n",
      height);
}

template <class F>
std::string series(const char* name, const std::vector<FrameMetrics>& frames, F of) {
  std::string out = fmt::format("${} << EOD\n", name);
  for (const FrameMetrics& m : frames)
    if (const std::optional<double> v = of(m))
      out += fmt::format("{} {:.8g}\n", m.index, *v);
    else if (!out.ends_with("\n\n"))
      out += "\n";
  return out + "EOD\n";
}

template <class F>
bool any(const std::vector<FrameMetrics>& frames, F of) {
  return std::any_of(frames.begin(), frames.end(), [&](const FrameMetrics& m) { return of(m).has_value(); });
}

/// A range that a constant curve does not collapse.
template <class F>
std::string padded_range(const std::vector<FrameMetrics>& frames, F of, double least) {
  double low = 1e300, high = -1e300;
  for (const FrameMetrics& m : frames)
    if (const auto v = of(m)) low = std::min(low, *v), high = std::max(high, *v);
  const double pad = std::max((high - low) * .15, least);
  return fmt::format("set yrange [{:.8g}:{:.8g}]\n", low - pad, high + pad);
}

std::string over_time(const ClipResult& r, const std::string& output) {
  const auto psnr = [](const FrameMetrics& m) { return m.psnr; };
  const auto ssim = [](const FrameMetrics& m) { return m.ssim; };
  const auto mean = [](const FrameMetrics& m) { return std::optional(m.mean_abs * 100); };
  const auto p99 = [](const FrameMetrics& m) { return std::optional(m.p99_abs * 100); };
  const bool has_psnr = any(r.frames, psnr), has_ssim = any(r.frames, ssim);
  const int panels = 1 + has_psnr + has_ssim;
  std::string s = terminal(90 + 230 * panels) + fmt::format("set output '{}'\nset multiplot\n", output) + kLook;
  const double x_max = static_cast<double>(std::max<int64_t>(r.frames.back().index, 1));
  s += fmt::format("set xrange [{:.4g}:{:.8g}]\n", -.01 * x_max, 1.01 * x_max);
  int panel = 0;
  const auto place = [&] {
    const double height = .86 / panels, top = .97 - panel * (height + .03 / panels);
    const bool last = ++panel == panels;
    return fmt::format(
        "set tmargin at screen {:.3f}\nset bmargin at screen {:.3f}\nset format x '{}'\nset xlabel '{}'\n", top,
        top - height + .03, last ? "%g" : "", last ? "frame" : "");
  };
  const char* style =
      r.frames.size() > 120 ? "lines linewidth 1.5" : "linespoints linewidth 1.5 pointtype 7 pointsize 0.4";
  if (has_psnr)
    s += series("psnr", r.frames, psnr) + place() + padded_range(r.frames, psnr, .5) +
         fmt::format("set ylabel 'PSNR, dB'\nplot $psnr with {} linecolor '#0072b2' notitle\n", style);
  if (has_ssim)
    s += series("ssim", r.frames, ssim) + place() + padded_range(r.frames, ssim, .0005) +
         fmt::format("set ylabel 'SSIM'\nplot $ssim with {} linecolor '#009e73' notitle\n", style);
  s += series("mean", r.frames, mean) + series("p99", r.frames, p99) + place() +
       "set key top right horizontal samplen 1.5\n";
  double top = 1e-9;
  for (const FrameMetrics& m : r.frames) top = std::max(top, m.p99_abs * 100);
  s += fmt::format("set yrange [0:{:.6g}]\n", top * 1.4);  // room for the key
  s += fmt::format(
      "set ylabel '|difference|, %'\nplot $p99 with {0} linecolor '#e69f00' title '99th percentile', $mean with {0} "
      "linecolor '#d55e00' title 'mean'\n",
      style);
  return s + "unset multiplot\n";
}

std::string histogram(const ClipResult& r, const std::string& output) {
  const auto& h = r.histogram;
  double total = 0;
  for (const double c : h.counts) total += c;
  std::string s = terminal(420) + fmt::format("set output '{}'\n", output) + kLook + "$counts << EOD\n";
  const double bin = h.top / static_cast<double>(h.counts.size()) * 100;
  double least = 1;
  for (size_t i = 0; i < h.counts.size(); ++i)
    if (h.counts[i] > 0) {
      s += fmt::format("{:.8g} {:.8g}\n", (static_cast<double>(i) + .5) * bin, h.counts[i] / total);
      least = std::min(least, h.counts[i] / total);
    }
  s += "EOD\nset logscale y\nset format y '1e%T'\nset bmargin at screen 0.17\nset tmargin at screen 0.96\nset style "
       "fill solid 0.8 noborder\n";
  s += fmt::format(
      "set boxwidth {:.8g}\nset xrange [0:{:.8g}]\nset yrange [{:.3g}:1.5]\nset xlabel '|difference|, % of the "
      "range'\nset ylabel 'share of samples'\n",
      bin * .9, h.top * 100, least / 3);
  const auto line = [&](std::optional<double> at, const char* name, const char* colour, double y) {
    return at ? fmt::format(
                    "set arrow from {0:.8g}, graph 0 to {0:.8g}, graph 1 nohead linecolor '{2}' dashtype 2 front\nset "
                    "label '{1}' at {0:.8g}, graph {3} offset 0.4,0 textcolor '{2}' front\n",
                    *at * 100, name, colour, y)
              : std::string();
  };
  s += line(r.summary.p95_abs_diff, "p95", "#222222", .95) + line(r.summary.p99_abs_diff, "p99", "#c40000", .88);
  return s + "plot $counts with boxes linecolor '#0072b2' notitle\n";
}

}  // namespace

ClipPlots draw_clip_plots(const ClipResult& result, const std::filesystem::path& folder, const std::string& prefix) {
  ClipPlots out;
  if (result.frames.empty() || result.summary.identical_frames == result.summary.frames) return out;
  const auto draw = [&](const std::string& file, auto script) {
    if (!out.problem.empty()) return std::string();
    out.problem = draw_gnuplot(folder, file, [&](const std::string& output) { return script(result, output); });
    return out.problem.empty() ? file : std::string();
  };
  out.over_time = draw(prefix + "over-time.svg", over_time);
  out.histogram = draw(prefix + "histogram.svg", histogram);
  return out;
}

}  // namespace parity

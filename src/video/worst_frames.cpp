#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "video/canvas.hpp"
#include "video/render.hpp"

namespace parity {
namespace {

constexpr int kPanel = 480;  // width of one picture of the contact sheet
constexpr Colour kGround{255, 255, 255}, kInk{34, 34, 34};

Frame fitted(const Frame& rgb, int width) {
  const int factor = std::max(1, width / rgb.width);
  if (rgb.width < width) return picture_codecs().resized(rgb, rgb.width * factor, rgb.height * factor);
  if (rgb.width == width) return rgb;
  return picture_codecs().resized(rgb, width, std::max(1, static_cast<int>(int64_t{rgb.height} * width / rgb.width)));
}

/// Black through purple, orange and yellow to white, evenly rising in lightness: readable by colour-blind people and in
/// grey.
Colour heat(double v) {
  constexpr double kStops[6][3] = {{0, 0, 4},      {70, 20, 110},  {160, 45, 100},
                                   {225, 100, 40}, {250, 190, 60}, {252, 255, 220}};
  const double at = std::clamp(v, 0.0, 1.0) * 5;
  const auto low = std::min<size_t>(static_cast<size_t>(at), 4);
  Colour out{};
  for (size_t k = 0; k < 3; ++k)
    out[k] = static_cast<uint8_t>(
        std::lround(kStops[low][k] + (kStops[low + 1][k] - kStops[low][k]) * (at - static_cast<double>(low))));
  return out;
}

float unit_at(const Frame& frame, size_t i) {
  const float v = frame.sample == Sample::u8    ? frame.as<uint8_t>()[i]
                  : frame.sample == Sample::u16 ? frame.as<uint16_t>()[i]
                                                : frame.as<float>()[i];
  return (v - frame.zero) / frame.span;
}

/// The largest |difference| of a pixel's channels, and the largest of all.
std::pair<std::vector<float>, float> pixel_differences(const Frame& r, const Frame& c) {
  const auto channels = static_cast<size_t>(r.channels);
  std::vector<float> out(r.count() / channels);
  float top = 0;
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t k = i * channels; k < (i + 1) * channels; ++k)
      out[i] = std::max(out[i], std::abs(unit_at(r, k) - unit_at(c, k)));
    top = std::max(top, out[i]);
  }
  return {std::move(out), top};
}

}  // namespace

void WorstFrames::add(const ComparedPair& pair) {
  if (pair.metrics.identical || keep_ == 0) return;
  if (kept_.size() == keep_ && pair.metrics.mse <= kept_.back().metrics.mse) return;
  if (kept_.size() == keep_) kept_.pop_back();
  const auto at =
      std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.metrics.mse < pair.metrics.mse; });
  Frame own_reference, own_candidate;
  const Frame &r = displayed(pair.reference, own_reference), &c = displayed(pair.candidate, own_candidate);
  if (at == kept_.begin()) reference_ = pair.reference, candidate_ = pair.candidate;
  kept_.insert(at, {{fitted(r, kPanel), fitted(c, kPanel), fitted(amplified(r, c, gain_), kPanel)}, pair.metrics});
}

void WorstFrames::write_contact_sheet(const std::filesystem::path& file) const {
  if (kept_.empty()) return;
  const Frame& first = kept_.front().panels[0];
  constexpr int kGap = 8, kLine = 26;
  const int column = std::max(first.width, 320) + kGap, row = first.height + kLine + kGap;
  Canvas sheet(3 * column + kGap, static_cast<int>(kept_.size()) * row + kGap, kGround);
  int y = kGap;
  for (const Kept& k : kept_) {
    const std::string labels[3] = {fmt::format("frame {}: reference", k.metrics.index),
                                   quality(k.metrics.psnr, k.metrics.ssim), fmt::format("|difference| x {:g}", gain_)};
    for (size_t i = 0; i < 3; ++i) {
      const int x = kGap + static_cast<int>(i) * column;
      sheet.text(labels[i], x, y + kLine - 9, 10, kInk);
      sheet.put(k.panels[i], x, y + kLine);
    }
    y += row;
  }
  picture_codecs().write_png(file, sheet.frame());
}

std::vector<FramePictures> WorstFrames::write_frames(const std::filesystem::path& folder,
                                                     const std::string& prefix) const {
  std::vector<FramePictures> out;
  for (const Kept& k : kept_) {
    const auto name = [&](const char* what) { return fmt::format("{}frame-{}-{}.png", prefix, k.metrics.index, what); };
    out.push_back(
        {k.metrics.index, k.metrics.psnr, k.metrics.ssim, name("reference"), name("candidate"), name("difference")});
    const std::string* files[] = {&out.back().reference, &out.back().candidate, &out.back().difference};
    for (size_t i = 0; i < 3; ++i) picture_codecs().write_png(folder / *files[i], k.panels[i]);
  }
  return out;
}

void WorstFrames::write_heat_map(const std::filesystem::path& file) const {
  if (kept_.empty()) return;
  const auto [values, top] = pixel_differences(reference_, candidate_);
  Frame map;
  map.shape(reference_.width, reference_.height, 3, Sample::u8);
  for (size_t i = 0; i < values.size(); ++i) {
    const Colour colour = heat(top > 0 ? values[i] / top : 0);
    std::copy_n(colour.data(), 3, map.as<uint8_t>() + 3 * i);
  }
  map = fitted(map, 960);
  constexpr int kBar = 24, kMargin = 10, kLabels = 110, kLine = 30;
  const int height = std::max(map.height, 160);
  Canvas canvas(std::max(map.width + kBar + kLabels + 2 * kMargin, 420), height + kLine + 2 * kMargin, kGround);
  canvas.text(fmt::format("frame {}: largest |difference| of a pixel's channels", kept_.front().metrics.index), kMargin,
              kLine - 8, 10, kInk);
  canvas.put(map, kMargin, kLine + kMargin);
  const int x = map.width + 2 * kMargin;
  for (int i = 0; i < height; ++i)
    canvas.fill(x, kLine + kMargin + i, kBar, 1, heat(1 - static_cast<double>(i) / (height - 1)));
  for (int tick = 0; tick <= 4; ++tick)
    canvas.text(fmt::format("{:.2f} %", top * 100 * (4 - tick) / 4), x + kBar + 6,
                kLine + kMargin + 6 + tick * (height - 10) / 4, 9, kInk);
  picture_codecs().write_png(file, canvas.frame());
}

}  // namespace parity

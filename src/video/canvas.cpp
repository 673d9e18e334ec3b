#include "video/canvas.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace parity {

Canvas::Canvas(int width, int height, Colour ground) {
  frame_.shape(width, height, 3, Sample::u8);
  fill(0, 0, width, height, ground);
}

void Canvas::fill(int x, int y, int width, int height, Colour colour) {
  for (int row = std::max(y, 0); row < std::min(y + height, frame_.height); ++row)
    for (int column = std::max(x, 0); column < std::min(x + width, frame_.width); ++column)
      std::copy_n(colour.data(), 3, frame_.as<uint8_t>() + (int64_t{row} * frame_.width + column) * 3);
}

void Canvas::put(const Frame& rgb, int x, int y) {
  const int width = std::min(rgb.width, frame_.width - x);
  for (int row = 0; row < std::min(rgb.height, frame_.height - y) && width > 0; ++row)
    std::copy_n(rgb.as<uint8_t>() + int64_t{row} * rgb.width * 3, width * 3,
                frame_.as<uint8_t>() + (int64_t{y + row} * frame_.width + x) * 3);
}

void Canvas::text(const std::string& text, int x, int baseline, double height, Colour colour) {
  picture_codecs().draw_text(frame_, text, x, baseline, height, colour);
}

std::string quality(std::optional<double> psnr, std::optional<double> ssim) {
  std::string out = psnr ? fmt::format("PSNR {:.2f} dB", *psnr) : "";
  if (ssim) out += fmt::format("{}SSIM {:.4f}", out.empty() ? "" : "   ", *ssim);
  return out;
}

std::string caption(int64_t index, bool identical, std::optional<double> psnr, std::optional<double> ssim) {
  const std::string out = fmt::format("frame {}", index), how = identical ? "identical" : quality(psnr, ssim);
  return how.empty() ? out : out + "   " + how;
}

}  // namespace parity

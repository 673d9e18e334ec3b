// An 8-bit RGB picture that other pictures are laid on.
#pragma once
#include <string>

#include "video/codecs.hpp"

namespace parity {

class Canvas {
 public:
  Canvas(int width, int height, Colour ground);
  void put(const Frame& rgb, int x, int y);  // what lies outside is cut off
  void text(const std::string& text, int x, int baseline, double height, Colour colour);
  void fill(int x, int y, int width, int height, Colour colour);
  const Frame& frame() const { return frame_; }

 private:
  Frame frame_;
};

/// "PSNR 38.21 dB   SSIM 0.9821"; without a range there is neither, and nothing is said.
std::string quality(std::optional<double> psnr, std::optional<double> ssim);
/// "frame 12   PSNR 38.21 dB": what is burnt in beside a frame.
std::string caption(int64_t index, bool identical, std::optional<double> psnr, std::optional<double> ssim);

}  // namespace parity

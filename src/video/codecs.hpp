// What decodes and encodes pictures and videos: OpenCV and FFmpeg's libraries. They take 0.1 s to load (OpenCV's image
// readers alone pull in 140 libraries, measured 55 ms), so they live in a library of their own that is loaded when
// first used. Plain data only: the library does not link the rest of the program.
#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <string>

#include "video/frame.hpp"

namespace parity {

using Colour = std::array<uint8_t, 3>;  // R, G, B

/// A new video file, H.264 in MP4, 4:2:0, index first, so that browsers play it.
class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  virtual void write(const Frame& rgb) = 0;  // (height, width, 3) u8, of the size given at the start
  virtual void close() = 0;                  // whole after this; without it the file is removed
};

class FrameCodecs {
 public:
  virtual ~FrameCodecs() = default;
  /// Everything that FFmpeg's libraries read as a video file; y4m too. `luma`: the Y plane as coded instead of RGB.
  /// Throws Error.
  virtual std::unique_ptr<FrameSource> open_video(const std::filesystem::path& file, bool luma, int threads) = 0;
  /// PNG, JPEG, TIFF, BMP, WebP: u8 or u16, 1 or 3 channels. True when there was an alpha channel, which is left out.
  virtual bool read_image(const std::filesystem::path& file, Frame& frame) = 0;
  virtual void write_png(const std::filesystem::path& file, const Frame& rgb) = 0;
  /// Null when FFmpeg's libraries hold no H.264 encoder. Throws Error when the file cannot be written.
  virtual std::unique_ptr<VideoWriter> create_video(const std::filesystem::path& file, int width, int height,
                                                    double rate) = 0;
  /// Text whose capitals are `height` pixels high, its baseline's left end at (x, y).
  virtual void draw_text(Frame& rgb, const std::string& text, int x, int y, double height, Colour colour) = 0;
  /// Area-averaged when smaller, nearest when larger (a pixel stays a pixel). u8.
  virtual Frame resized(const Frame& image, int width, int height) = 0;
};

/// Loads the library on first use. Throws Error when it is missing. Thread-safe.
FrameCodecs& frame_codecs();

}  // namespace parity

// What decodes and encodes pictures and videos: OpenCV and FFmpeg's libraries. They take 0.1 s to load (OpenCV's image
// readers alone pull in 140 libraries, measured 55 ms), so each lives in a library of its own that is loaded when first
// used. Plain data only: these libraries do not link the rest of the program.
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

/// Videos, by FFmpeg's libraries.
class VideoCodecs {
 public:
  virtual ~VideoCodecs() = default;
  /// Everything that FFmpeg's libraries read as a video file; y4m too. `luma`: the Y plane as coded instead of RGB.
  /// Throws Error.
  virtual std::unique_ptr<FrameSource> open(const std::filesystem::path& file, bool luma, int threads) = 0;
  /// Null when FFmpeg's libraries hold no H.264 encoder. Throws Error when the file cannot be written.
  virtual std::unique_ptr<VideoWriter> create(const std::filesystem::path& file, int width, int height,
                                              double rate) = 0;
};

/// Still pictures and drawing, by OpenCV.
class PictureCodecs {
 public:
  virtual ~PictureCodecs() = default;
  /// PNG, JPEG, TIFF, BMP, WebP: u8 or u16, 1 or 3 channels. True when there was an alpha channel, which is left out.
  virtual bool read(const std::filesystem::path& file, Frame& frame) = 0;
  virtual void write_png(const std::filesystem::path& file, const Frame& rgb) = 0;
  /// Text whose capitals are `height` pixels high, its baseline's left end at (x, y).
  virtual void draw_text(Frame& rgb, const std::string& text, int x, int y, double height, Colour colour) = 0;
  /// Area-averaged when smaller, nearest when larger (a pixel stays a pixel). u8.
  virtual Frame resized(const Frame& image, int width, int height) = 0;
};

/// Load their library on first use. Throw Error when it is missing. Thread-safe.
VideoCodecs& video_codecs();
PictureCodecs& picture_codecs();

}  // namespace parity

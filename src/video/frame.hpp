// Frames, wherever they come from: one at a time, so that memory does not grow with a clip's length. Plain data: the
// decoding library (src/video/codec) includes this too.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parity {

enum class Sample { u8, u16, f32 };

/// Interleaved samples, row-major: (height, width, channels). A sample v stands for (v - zero) / span; pictures lie in
/// [0, 1] then. Colours are in the order R, G, B.
struct Frame {
  int width = 0, height = 0, channels = 0;
  Sample sample = Sample::u8;
  float zero = 0, span = 255;
  std::vector<std::byte> bytes;
  std::optional<double> time;  // seconds since the clip's beginning, where the file says so

  size_t count() const {
    return static_cast<size_t>(width) * static_cast<size_t>(height) * static_cast<size_t>(channels);
  }
  template <class T>
  const T* as() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(bytes.data());
  }
  /// Sets size and kind; keeps memory that is large enough.
  void shape(int w, int h, int c, Sample s) {
    width = w, height = h, channels = c, sample = s;
    bytes.resize(count() * (s == Sample::u8 ? 1 : s == Sample::u16 ? 2 : 4));
  }
  bool same_size(const Frame& other) const {
    return width == other.width && height == other.height && channels == other.channels;
  }
};

/// What is known of a clip before its frames are read.
struct ClipFacts {
  std::string path;
  std::string kind;        // "video", "images", "npy", "npz", "hdf5"
  std::string format;      // "h264 yuv420p", "png uint8", "float32 (T,H,W,C) = 13x544x960x3"
  std::string conversion;  // how samples become [0, 1] RGB or luma
  int width = 0, height = 0, channels = 0;
  std::optional<int64_t> frames;  // where the file says so
  std::optional<double> rate;     // frames a second
  bool luma_plane = false;        // the one channel is the coded Y plane
  std::vector<std::string> warnings;
};

/// Frames in order. Not thread-safe; several sources are independent.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  virtual const ClipFacts& facts() const = 0;
  /// False at the end. Throws Error (file, frame, what to do) for what cannot be decoded: a truncated clip is not a
  /// short clip.
  virtual bool read(Frame& frame) = 0;
};

}  // namespace parity

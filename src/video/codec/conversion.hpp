// Decoded pictures as frames: the coded Y plane as it is, or RGB (grey) as the program ffmpeg makes it.
#pragma once
#include <vector>

#include "video/codec/ffmpeg.hpp"

namespace parity::codec {

class Conversion {
 public:
  /// After the first frame was decoded: only then are picture format and colours certain. Completes `clip.facts`;
  /// `luma`: the Y plane alone where there is one. Throws Error for formats that are not supported. Both outlive this.
  Conversion(ClipBeingRead& clip, const AVCodecContext& codec, bool luma);

  void convert(const AVFrame& picture, Frame& out);

 private:
  std::string in_words(bool rgb, bool grey) const;
  bool full_range() const;
  void copy_plane(const AVFrame& picture, Frame& out) const;
  void scale(const AVFrame& picture, Frame& out);
  void make_scaler(const AVFrame& picture);

  const ClipBeingRead& clip_;
  const AVCodecContext& codec_;
  const AVPixFmtDescriptor* pixel_ = nullptr;
  bool plane_ = false;
  int depth_ = 8;
  AVPixelFormat target_ = AV_PIX_FMT_RGB24;
  std::unique_ptr<SwsContext, FreeScaler> scaler_;
  std::vector<uint8_t> padded_;
};

}  // namespace parity::codec

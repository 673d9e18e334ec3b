// The decoder of a video stream, strict: damage that it notices is an error, not a grey picture.
#pragma once
#include <mutex>
#include <utility>

#include "video/codec/container.hpp"

namespace parity::codec {

/// What a decoder, in whichever of its threads, says of damage that its results do not show.
class Complaints {
 public:
  void add(std::string text) {
    const std::lock_guard lock(mutex_);
    if (first_.empty()) first_ = std::move(text);
  }
  std::string take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(first_, "");
  }

 private:
  std::mutex mutex_;
  std::string first_;
};

class Decoder {
 public:
  /// `threads`: 0 chooses. Both outlive this.
  Decoder(ClipBeingRead& clip, Container& container, int threads);

  /// The next frame; false at the end of the data.
  bool next();
  const AVFrame& frame() const { return *frame_; }
  const AVCodecContext& context() const { return *codec_; }

 private:
  void consider(std::string complaint);

  ClipBeingRead& clip_;
  Container& container_;
  Complaints complaints_;  // outlives the decoder
  bool complained_ = false;
  std::unique_ptr<AVCodecContext, FreeCodec> codec_;
  std::unique_ptr<AVFrame, FreeFrame> frame_{av_frame_alloc()};
};

}  // namespace parity::codec

// The container of a video file: its one video stream, packet by packet, and whether all that it promises came.
#pragma once
#include "video/codec/ffmpeg.hpp"

namespace parity::codec {

class Container {
 public:
  /// Opens `clip.facts.path`. Throws Error for files that are no video. `clip` outlives this.
  explicit Container(const ClipBeingRead& clip);

  const AVStream& stream() const { return *stream_; }
  /// Gives the decoder one more packet, or the end.
  void feed(AVCodecContext& decoder);
  /// After the last frame, which ends at `end` seconds: throws Error when less came than the container promised.
  void check_end(double end) const;

 private:
  double stated_duration() const;

  const ClipBeingRead& clip_;
  std::unique_ptr<AVFormatContext, FreeFormat> format_;
  std::unique_ptr<AVPacket, FreePacket> packet_{av_packet_alloc()};
  AVStream* stream_ = nullptr;
  int64_t packets_ = 0;
  int64_t packet_end_ = -1;  // in the file, of the last packet
};

}  // namespace parity::codec

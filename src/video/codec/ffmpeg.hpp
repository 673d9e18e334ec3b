// FFmpeg's handles with owners, and what the parts of a video reader share.
#pragma once
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}
#include <fmt/format.h>

#include <memory>
#include <string>

#include "core/error.hpp"
#include "video/frame.hpp"

namespace parity::codec {

struct FreeFormat {
  void operator()(AVFormatContext* p) const { avformat_close_input(&p); }
};
struct FreeCodec {
  void operator()(AVCodecContext* p) const { avcodec_free_context(&p); }
};
struct FreePacket {
  void operator()(AVPacket* p) const { av_packet_free(&p); }
};
struct FreeFrame {
  void operator()(AVFrame* p) const { av_frame_free(&p); }
};
struct FreeScaler {
  void operator()(SwsContext* p) const { sws_freeContext(p); }
};

/// FFmpeg's words for an error code.
inline std::string message(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

/// A clip while it is read.
struct ClipBeingRead {
  ClipFacts facts;
  int64_t index = 0;  // of the frame that is being decoded

  [[noreturn]] void broken(const std::string& why) const {
    throw Error(
        fmt::format("{}: frame {} cannot be decoded ({}); the file is truncated or damaged", facts.path, index, why));
  }
};

}  // namespace parity::codec

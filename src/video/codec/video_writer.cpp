// H.264 in MP4 for a browser: 4:2:0, index first, written under another name and renamed when whole.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/opt.h>
#include <libswscale/swscale.h>
}
#include <fmt/format.h>

#include <cmath>
#include <string_view>

#include "core/error.hpp"
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

/// Debian's libraries hold the first; others only Cisco's. What comes out of either plays in browsers.
const AVCodec* h264_encoder() {
  for (const char* name : {"libx264", "libopenh264"})
    if (const AVCodec* encoder = avcodec_find_encoder_by_name(name)) return encoder;
  return nullptr;
}

class Mp4Writer : public VideoWriter {
 public:
  Mp4Writer(std::filesystem::path file, const AVCodec* encoder, int width, int height, double rate)
      : file_(std::move(file)), part_(file_.string() + ".part.mp4"), width_(width), height_(height) {
    av_log_set_level(AV_LOG_QUIET);
    try {
      open(encoder, av_d2q(rate, 100000));
    } catch (...) {
      release();
      throw;
    }
  }

  ~Mp4Writer() override { release(); }

  void write(const Frame& rgb) override {
    check(av_frame_make_writable(frame_), "encode it");
    const uint8_t* source[4] = {rgb.as<uint8_t>(), nullptr, nullptr, nullptr};
    const int strides[4] = {3 * width_, 0, 0, 0};
    sws_scale(scaler_, source, strides, 0, height_, frame_->data, frame_->linesize);
    frame_->pts = next_++;
    encode(frame_);
  }

  void close() override {
    encode(nullptr);
    check(av_write_trailer(format_), "finish it");
    check(avio_closep(&format_->pb), "close it");
    std::error_code error;
    std::filesystem::rename(part_, file_, error);
    if (error) throw Error(fmt::format("{}: cannot be written ({})", file_.string(), error.message()));
  }

 private:
  void check(int code, const char* what) const {
    if (code >= 0) return;
    char text[AV_ERROR_MAX_STRING_SIZE] = {};
    av_strerror(code, text, sizeof text);
    throw Error(fmt::format("{}: cannot {} ({}); choose another place with --out, or leave it out with --no-video",
                            file_.string(), what, text));
  }

  void open(const AVCodec* encoder, AVRational rate) {
    check(avformat_alloc_output_context2(&format_, nullptr, "mp4", part_.c_str()), "begin it");
    codec_ = avcodec_alloc_context3(encoder);
    codec_->width = width_;
    codec_->height = height_;
    codec_->pix_fmt = AV_PIX_FMT_YUV420P;
    codec_->time_base = av_inv_q(rate);
    codec_->framerate = rate;
    codec_->colorspace = AVCOL_SPC_SMPTE170M;
    codec_->color_range = AVCOL_RANGE_MPEG;
    codec_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    set_quality(std::string_view(encoder->name) == "libx264");
    codec_->thread_count = 2;
    check(avcodec_open2(codec_, encoder, nullptr), "encode it");
    stream_ = avformat_new_stream(format_, nullptr);
    stream_->time_base = codec_->time_base;
    stream_->avg_frame_rate = rate;
    check(avcodec_parameters_from_context(stream_->codecpar, codec_), "begin it");
    check(avio_open(&format_->pb, part_.c_str(), AVIO_FLAG_WRITE), "open it");
    AVDictionary* options = nullptr;
    av_dict_set(&options, "movflags", "+faststart", 0);
    const int code = avformat_write_header(format_, &options);
    av_dict_free(&options);
    check(code, "begin it");
    scaler_ = sws_getContext(width_, height_, AV_PIX_FMT_RGB24, width_, height_, AV_PIX_FMT_YUV420P, SWS_BICUBIC,
                             nullptr, nullptr, nullptr);
    frame_ = av_frame_alloc();
    frame_->format = AV_PIX_FMT_YUV420P;
    frame_->width = width_;
    frame_->height = height_;
    check(av_frame_get_buffer(frame_, 0), "encode it");
    packet_ = av_packet_alloc();
  }

  void set_quality(bool x264) {
    if (!x264) {
      codec_->bit_rate = int64_t{3} * width_ * height_;
      return;
    }
    av_opt_set(codec_->priv_data, "preset", "veryfast", 0);
    av_opt_set(codec_->priv_data, "crf", "20", 0);
    // Looking far ahead costs 400 MB at 3840 pixels of width and buys nothing here.
    av_opt_set(codec_->priv_data, "x264-params", "rc-lookahead=4:sync-lookahead=0:bframes=1", 0);
  }

  void encode(const AVFrame* frame) {
    check(avcodec_send_frame(codec_, frame), "encode it");
    while (true) {
      const int code = avcodec_receive_packet(codec_, packet_);
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return;
      check(code, "encode it");
      av_packet_rescale_ts(packet_, codec_->time_base, stream_->time_base);
      packet_->stream_index = stream_->index;
      packet_->duration = av_rescale_q(1, codec_->time_base, stream_->time_base);
      check(av_interleaved_write_frame(format_, packet_), "write it");
    }
  }

  void release() {
    if (format_ && format_->pb) avio_closep(&format_->pb);
    avformat_free_context(format_);
    format_ = nullptr;
    avcodec_free_context(&codec_);
    av_frame_free(&frame_);
    av_packet_free(&packet_);
    sws_freeContext(scaler_);
    scaler_ = nullptr;
    std::error_code ignored;
    std::filesystem::remove(part_, ignored);  // gone already when closed
  }

  std::filesystem::path file_, part_;
  int width_, height_;
  int64_t next_ = 0;
  AVFormatContext* format_ = nullptr;
  AVCodecContext* codec_ = nullptr;
  AVStream* stream_ = nullptr;
  AVFrame* frame_ = nullptr;
  AVPacket* packet_ = nullptr;
  SwsContext* scaler_ = nullptr;
};

}  // namespace

std::unique_ptr<VideoWriter> create_video(const std::filesystem::path& file, int width, int height, double rate) {
  const AVCodec* encoder = h264_encoder();
  if (!encoder) return nullptr;
  return std::make_unique<Mp4Writer>(file, encoder, width, height, rate);
}

}  // namespace parity::codec

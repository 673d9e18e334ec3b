// Video files, by FFmpeg's libraries directly: cv::VideoCapture gives neither the coded Y plane nor bit depth, range,
// time stamps or the difference between an end and a broken file.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/pixdesc.h>
#include <libswscale/swscale.h>
}
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <thread>
#include <utility>

#include "core/error.hpp"
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

// No playlists or network protocols: a file must not lead to other files.
constexpr const char* kFormats =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,yuv4mpegpipe,ivf,h264,hevc,obu,mpegts,mpeg,mpegvideo,flv,ogg,gif,apng,"
    "nut,asf,mxf";

std::string message(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

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

void note_complaint(void* who, int level, const char* format, va_list values) {
  if (level > AV_LOG_ERROR || !who || *static_cast<const AVClass**>(who) != avcodec_get_class()) return;
  auto* const complaints = static_cast<Complaints*>(static_cast<AVCodecContext*>(who)->opaque);
  char text[256];
  std::vsnprintf(text, sizeof text, format, values);
  if (complaints) complaints->add(text);
}

/// The decoders built on FFmpeg's mpegvideo abort the program (5.1) when told to give up at the first error; they flag
/// the frame otherwise.
bool gives_up_cleanly(AVCodecID id) {
  switch (id) {
    case AV_CODEC_ID_MPEG4:
    case AV_CODEC_ID_H263:
    case AV_CODEC_ID_H263P:
    case AV_CODEC_ID_FLV1:
    case AV_CODEC_ID_MSMPEG4V1:
    case AV_CODEC_ID_MSMPEG4V2:
    case AV_CODEC_ID_MSMPEG4V3:
    case AV_CODEC_ID_WMV1:
    case AV_CODEC_ID_WMV2:
      return false;
    default:
      return true;
  }
}

class VideoFile : public FrameSource {
 public:
  VideoFile(const std::filesystem::path& file, bool luma, int threads) : luma_(luma) {
    facts_.path = file.string();
    facts_.kind = "video";
    av_log_set_callback(note_complaint);
    open_file();
    open_decoder(threads);
    first_ = decode();  // only a decoded frame states its picture format and colours for certain
    describe();
  }

  const ClipFacts& facts() const override { return facts_; }

  bool read(Frame& out) override {
    if (!std::exchange(first_, false) && !decode()) return false;
    convert(out);
    if (frame_->best_effort_timestamp != AV_NOPTS_VALUE) {
      const double time = static_cast<double>(frame_->best_effort_timestamp) * av_q2d(stream_->time_base);
      if (!first_time_) first_time_ = time;
      out.time = time - *first_time_;
      end_ = std::max(end_, time + std::max(static_cast<double>(frame_->pkt_duration) * av_q2d(stream_->time_base),
                                            facts_.rate ? 1 / *facts_.rate : 0));
    } else {
      out.time.reset();
    }
    ++index_;
    return true;
  }

 private:
  [[noreturn]] void broken(const std::string& why) const {
    throw Error(
        fmt::format("{}: frame {} cannot be decoded ({}); the file is truncated or damaged", facts_.path, index_, why));
  }

  /// A check sum that does not fit is damage; what else a decoder complains about may be meant so.
  void heed(std::string complaint) {
    if (complaint.empty()) return;
    std::erase_if(complaint, [](char c) { return c == '\n'; });
    if (complaint.find("CRC") != std::string::npos) broken(complaint);
    if (!complained_)
      facts_.warnings.push_back(fmt::format("{}: its decoder complains at frame {} ({}); is the file damaged?",
                                            facts_.path, index_, complaint));
    complained_ = true;
  }

  /// The next frame, into frame_; false at the end.
  bool decode() {
    while (true) {
      const int code = avcodec_receive_frame(codec_.get(), frame_.get());
      if (code == 0) break;
      if (code == AVERROR_EOF) return finish();
      if (code != AVERROR(EAGAIN)) broken(message(code));
      feed();
    }
    if (frame_->flags & AV_FRAME_FLAG_CORRUPT || frame_->decode_error_flags != 0) broken("damaged data");
    heed(complaints_.take());
    return true;
  }

  /// Does the header say everything that is needed before a frame is decoded? libavformat would decode the first one
  /// to find out, in one thread: 70 ms of a large picture.
  static bool says_all(const AVFormatContext& file) {
    int videos = 0;
    for (unsigned i = 0; i < file.nb_streams; ++i) {
      const AVStream& s = *file.streams[i];
      const AVCodecParameters& codec = *s.codecpar;
      if (codec.codec_type != AVMEDIA_TYPE_VIDEO) continue;
      const bool known = codec.codec_id == AV_CODEC_ID_H264 || codec.codec_id == AV_CODEC_ID_HEVC;
      if (++videos > 1 || !known || codec.extradata_size == 0 || s.nb_frames == 0 || s.avg_frame_rate.num == 0)
        return false;
    }
    return videos == 1 && std::string_view(file.iformat->name).starts_with("mov");
  }

  void open_file() {
    AVFormatContext* context = nullptr;
    AVDictionary* options = nullptr;
    av_dict_set(&options, "protocol_whitelist", "file", 0);
    av_dict_set(&options, "format_whitelist", kFormats, 0);
    const int code = avformat_open_input(&context, ("file:" + facts_.path).c_str(), nullptr, &options);
    av_dict_free(&options);
    if (code < 0)
      throw Error(fmt::format("{}: cannot be opened as a video ({}); is it whole?", facts_.path, message(code)));
    format_.reset(context);
    const int found = says_all(*context) ? 0 : avformat_find_stream_info(context, nullptr);
    const int best = found < 0 ? found : av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
    if (best < 0) throw Error(fmt::format("{}: holds no video stream that can be decoded", facts_.path));
    stream_ = context->streams[best];
    for (unsigned i = 0; i < context->nb_streams; ++i)
      if (static_cast<int>(i) != best) context->streams[i]->discard = AVDISCARD_ALL;
  }

  void open_decoder(int threads) {
    const AVCodec* decoder = avcodec_find_decoder(stream_->codecpar->codec_id);
    if (!decoder)
      throw Error(fmt::format("{}: no decoder for {}", facts_.path, avcodec_get_name(stream_->codecpar->codec_id)));
    codec_.reset(avcodec_alloc_context3(decoder));
    avcodec_parameters_to_context(codec_.get(), stream_->codecpar);
    // One waits while its frame is converted, one for rows of the frame before. Each holds frames: no more than six,
    // however large the machine.
    codec_->thread_count =
        threads > 0 ? threads : std::clamp<int>(static_cast<int>(std::thread::hardware_concurrency()) + 2, 2, 6);
    codec_->pkt_timebase = stream_->time_base;
    codec_->opaque = &complaints_;
    codec_->err_recognition =
        AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | (gives_up_cleanly(decoder->id) ? AV_EF_EXPLODE : 0);
    if (const int code = avcodec_open2(codec_.get(), decoder, nullptr); code < 0)
      throw Error(fmt::format("{}: {} cannot be decoded ({})", facts_.path, decoder->name, message(code)));
  }

  void describe() {
    const AVPixelFormat format = codec_->pix_fmt;
    pixel_ = av_pix_fmt_desc_get(format);
    if (!pixel_ || codec_->width <= 0 || codec_->height <= 0)
      throw Error(fmt::format("{}: its picture format is not stated; is the file whole?", facts_.path));
    const bool grey = pixel_->nb_components <= 2, rgb = (pixel_->flags & AV_PIX_FMT_FLAG_RGB) != 0;
    depth_ = pixel_->comp[0].depth;
    if (depth_ > 16 || pixel_->flags & AV_PIX_FMT_FLAG_FLOAT)
      throw Error(fmt::format("{}: {} is not supported; convert it to 8 to 16 bits", facts_.path, pixel_->name));
    plane_ = luma_ && !rgb && pixel_->comp[0].plane == 0 && pixel_->comp[0].step == (depth_ > 8 ? 2 : 1) &&
             pixel_->comp[0].shift == 0 &&
             !(pixel_->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BE));
    facts_.luma_plane = plane_;
    facts_.width = codec_->width;
    facts_.height = codec_->height;
    facts_.channels = plane_ || grey ? 1 : 3;
    if (!plane_)
      target_ = grey ? (depth_ > 8 ? AV_PIX_FMT_GRAY16LE : AV_PIX_FMT_GRAY8)
                     : (depth_ > 8 ? AV_PIX_FMT_RGB48LE : AV_PIX_FMT_RGB24);
    facts_.format = fmt::format("{} {}", avcodec_get_name(codec_->codec_id), pixel_->name);
    if (pixel_->flags & AV_PIX_FMT_FLAG_ALPHA)
      facts_.warnings.push_back(facts_.path + ": its alpha channel is left out");
    if (stream_->nb_frames > 0) facts_.frames = stream_->nb_frames;
    const AVRational rate = stream_->avg_frame_rate.num > 0 ? stream_->avg_frame_rate : stream_->r_frame_rate;
    if (rate.num > 0 && rate.den > 0) facts_.rate = av_q2d(rate);
    facts_.conversion = conversion(rgb, grey);
  }

  std::string conversion(bool rgb, bool grey) const {
    if (plane_) return fmt::format("Y plane as coded, {} bits, [0, {}] is [0, 1]", depth_, (1 << depth_) - 1);
    if (rgb) return fmt::format("{} as coded", pixel_->name);
    const char* matrix = av_color_space_name(codec_->colorspace);
    const bool stated =
        codec_->colorspace != AVCOL_SPC_UNSPECIFIED && codec_->colorspace != AVCOL_SPC_RESERVED && matrix;
    return fmt::format("{} to {} by libswscale (bicubic), {}, {} range{}", pixel_->name, grey ? "grey" : "RGB",
                       stated ? matrix : "BT.601 (the file states no matrix)", full_range() ? "full" : "limited",
                       codec_->color_range == AVCOL_RANGE_UNSPECIFIED && !full_range() ? " (not stated)" : "");
  }

  bool full_range() const {
    return codec_->color_range == AVCOL_RANGE_JPEG || std::string_view(pixel_->name).starts_with("yuvj");
  }

  /// Gives the decoder one more packet, or the end.
  void feed() {
    while (true) {
      const int code = av_read_frame(format_.get(), packet_.get());
      if (code == AVERROR_EOF || (code < 0 && format_->pb && format_->pb->eof_reached && code == AVERROR(EAGAIN))) {
        avcodec_send_packet(codec_.get(), nullptr);
        return;
      }
      if (code < 0) broken(message(code));
      const bool ours = packet_->stream_index == stream_->index, corrupt = (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0;
      int sent = 0;
      if (ours && !corrupt) {
        ++packets_;
        packet_end_ = packet_->pos < 0 ? -1 : packet_->pos + packet_->size;
        sent = avcodec_send_packet(codec_.get(), packet_.get());
      }
      av_packet_unref(packet_.get());
      if (ours && corrupt) broken("its data ends early");
      if (sent < 0) broken(message(sent));
      if (ours) return;
    }
  }

  /// The end of the data; also the end of what the container promised?
  bool finish() {
    if (stream_->nb_frames > 0 && packets_ < stream_->nb_frames)
      throw Error(fmt::format("{}: ends after {} of {} frames; the file is truncated", facts_.path, packets_,
                              stream_->nb_frames));
    const double promised = stated_duration(), frame = facts_.rate ? 1 / *facts_.rate : 0;
    if (promised > 0 && index_ > 0 && end_ + frame / 2 < promised)
      throw Error(fmt::format("{}: ends at {:.2f} of {:.2f} s; the file is truncated", facts_.path, end_, promised));
    // y4m promises nothing, but nothing may follow its last whole frame either.
    if (std::string_view(format_->iformat->name) == "yuv4mpegpipe" && packet_end_ >= 0 &&
        packet_end_ < avio_size(format_->pb))
      broken("its data ends early");
    if (index_ == 0) throw Error(fmt::format("{}: holds no frames", facts_.path));
    return false;
  }

  /// Seconds; Matroska states a stream's in a tag "00:00:04.400000000". 0 when not stated.
  double stated_duration() const {
    if (stream_->nb_frames > 0) return 0;  // counted already
    const AVDictionaryEntry* tag = av_dict_get(stream_->metadata, "DURATION", nullptr, 0);
    int hours = 0, minutes = 0;
    double seconds = 0;
    if (tag && std::sscanf(tag->value, "%d:%d:%lf", &hours, &minutes, &seconds) == 3)
      return hours * 3600.0 + minutes * 60.0 + seconds;
    if (format_->nb_streams == 1 && format_->duration > 0 &&
        std::string_view(format_->iformat->name).starts_with("matroska"))
      return static_cast<double>(format_->duration) / AV_TIME_BASE;
    return 0;
  }

  void convert(Frame& out) {
    if (frame_->width != facts_.width || frame_->height != facts_.height)
      throw Error(fmt::format("{}: frame {} is {}x{}, those before {}x{}; cut the clip there", facts_.path, index_,
                              frame_->width, frame_->height, facts_.width, facts_.height));
    out.zero = 0;
    plane_ ? copy_plane(out) : scale(out);
  }

  void copy_plane(Frame& out) {
    out.shape(facts_.width, facts_.height, 1, depth_ > 8 ? Sample::u16 : Sample::u8);
    out.span = static_cast<float>((1 << depth_) - 1);
    const size_t row = static_cast<size_t>(facts_.width) * (depth_ > 8 ? 2 : 1);
    for (int y = 0; y < facts_.height; ++y)
      std::copy_n(reinterpret_cast<const std::byte*>(frame_->data[0] + y * int64_t{frame_->linesize[0]}), row,
                  out.bytes.data() + static_cast<size_t>(y) * row);
  }

  void scale(Frame& out) {
    const bool deep = depth_ > 8;
    out.shape(facts_.width, facts_.height, facts_.channels, deep ? Sample::u16 : Sample::u8);
    out.span = deep ? 65535 : 255;
    if (!scaler_) make_scaler();
    // Its vectorised loops write whole vectors: where rows are not made of them, into rows with room at the end.
    const size_t row = out.bytes.size() / static_cast<size_t>(facts_.height);
    const bool direct = row % 64 == 0;
    const size_t padded = direct ? row : (row + 127) / 64 * 64;
    if (!direct) padded_.resize(padded * static_cast<size_t>(facts_.height) + 64);
    uint8_t* target[4] = {direct ? out.as<uint8_t>() : padded_.data(), nullptr, nullptr, nullptr};
    const int strides[4] = {static_cast<int>(padded), 0, 0, 0};
    if (sws_scale(scaler_.get(), frame_->data, frame_->linesize, 0, facts_.height, target, strides) != facts_.height)
      broken("colour conversion failed");
    for (size_t y = 0; !direct && y < static_cast<size_t>(facts_.height); ++y)
      std::copy_n(reinterpret_cast<const std::byte*>(padded_.data() + y * padded), row, out.bytes.data() + y * row);
  }

  void make_scaler() {
    const auto format = static_cast<AVPixelFormat>(frame_->format);
    if (format != codec_->pix_fmt) broken("the picture format changes");
    // The program ffmpeg's own default (bicubic), so that both see the same RGB.
    scaler_.reset(sws_getContext(facts_.width, facts_.height, format, facts_.width, facts_.height, target_, SWS_BICUBIC,
                                 nullptr, nullptr, nullptr));
    if (!scaler_) throw Error(fmt::format("{}: {} cannot be converted to RGB", facts_.path, pixel_->name));
    const int* in =
        sws_getCoefficients(codec_->colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : codec_->colorspace);
    sws_setColorspaceDetails(scaler_.get(), in, full_range(), sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16,
                             1 << 16);
  }

  bool luma_, plane_ = false;
  int depth_ = 8;
  ClipFacts facts_;
  Complaints complaints_;  // outlives the decoder
  bool complained_ = false;
  bool first_ = false;  // is in frame_, not read yet
  std::unique_ptr<AVFormatContext, FreeFormat> format_;
  std::unique_ptr<AVCodecContext, FreeCodec> codec_;
  std::unique_ptr<AVPacket, FreePacket> packet_{av_packet_alloc()};
  std::unique_ptr<AVFrame, FreeFrame> frame_{av_frame_alloc()};
  std::unique_ptr<SwsContext, FreeScaler> scaler_;
  AVStream* stream_ = nullptr;
  const AVPixFmtDescriptor* pixel_ = nullptr;
  AVPixelFormat target_ = AV_PIX_FMT_RGB24;
  std::vector<uint8_t> padded_;
  int64_t index_ = 0, packets_ = 0;
  std::optional<double> first_time_;
  double end_ = 0;           // of the last frame
  int64_t packet_end_ = -1;  // in the file, of the last packet
};

}  // namespace

std::unique_ptr<FrameSource> open_video(const std::filesystem::path& file, bool luma, int threads) {
  return std::make_unique<VideoFile>(file, luma, threads);
}

}  // namespace parity::codec

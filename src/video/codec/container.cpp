#include "video/codec/container.hpp"

#include <cstdio>
#include <string_view>

namespace parity::codec {
namespace {

// No playlists or network protocols: a file must not lead to other files.
constexpr const char* kFormats =
    "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,avi,yuv4mpegpipe,ivf,h264,hevc,obu,mpegts,mpeg,mpegvideo,flv,ogg,gif,apng,"
    "nut,asf,mxf";

/// Does the header say everything that is needed before a frame is decoded? libavformat would decode the first one
/// to find out, in one thread: 70 ms of a large picture.
bool says_all(const AVFormatContext& file) {
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

}  // namespace

Container::Container(const ClipBeingRead& clip) : clip_(clip) {
  const std::string& path = clip.facts.path;
  AVFormatContext* context = nullptr;
  AVDictionary* options = nullptr;
  av_dict_set(&options, "protocol_whitelist", "file", 0);
  av_dict_set(&options, "format_whitelist", kFormats, 0);
  const int code = avformat_open_input(&context, ("file:" + path).c_str(), nullptr, &options);
  av_dict_free(&options);
  if (code < 0) throw Error(fmt::format("{}: cannot be opened as a video ({}); is it whole?", path, message(code)));
  format_.reset(context);
  const int found = says_all(*context) ? 0 : avformat_find_stream_info(context, nullptr);
  const int best = found < 0 ? found : av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  if (best < 0) throw Error(fmt::format("{}: holds no video stream that can be decoded", path));
  stream_ = context->streams[best];
  for (unsigned i = 0; i < context->nb_streams; ++i)
    if (static_cast<int>(i) != best) context->streams[i]->discard = AVDISCARD_ALL;
}

void Container::feed(AVCodecContext& decoder) {
  while (true) {
    const int code = av_read_frame(format_.get(), packet_.get());
    if (code == AVERROR_EOF || (code < 0 && format_->pb && format_->pb->eof_reached && code == AVERROR(EAGAIN))) {
      avcodec_send_packet(&decoder, nullptr);
      return;
    }
    if (code < 0) clip_.broken(message(code));
    const bool ours = packet_->stream_index == stream_->index, corrupt = (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0;
    int sent = 0;
    if (ours && !corrupt) {
      ++packets_;
      packet_end_ = packet_->pos < 0 ? -1 : packet_->pos + packet_->size;
      sent = avcodec_send_packet(&decoder, packet_.get());
    }
    av_packet_unref(packet_.get());
    if (ours && corrupt) clip_.broken("its data ends early");
    if (sent < 0) clip_.broken(message(sent));
    if (ours) return;
  }
}

void Container::check_end(double end) const {
  const ClipFacts& facts = clip_.facts;
  if (stream_->nb_frames > 0 && packets_ < stream_->nb_frames)
    throw Error(
        fmt::format("{}: ends after {} of {} frames; the file is truncated", facts.path, packets_, stream_->nb_frames));
  const double promised = stated_duration(), frame = facts.rate ? 1 / *facts.rate : 0;
  if (promised > 0 && clip_.index > 0 && end + frame / 2 < promised)
    throw Error(fmt::format("{}: ends at {:.2f} of {:.2f} s; the file is truncated", facts.path, end, promised));
  // y4m promises nothing, but nothing may follow its last whole frame either.
  if (std::string_view(format_->iformat->name) == "yuv4mpegpipe" && packet_end_ >= 0 &&
      packet_end_ < avio_size(format_->pb))
    clip_.broken("its data ends early");
  if (clip_.index == 0) throw Error(fmt::format("{}: holds no frames", facts.path));
}

/// Seconds; Matroska states a stream's in a tag "00:00:04.400000000". 0 when not stated.
double Container::stated_duration() const {
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

}  // namespace parity::codec

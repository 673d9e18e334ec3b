#include "video/codec/decoder.hpp"

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <thread>

namespace parity::codec {
namespace {

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

}  // namespace

Decoder::Decoder(ClipBeingRead& clip, Container& container, int threads) : clip_(clip), container_(container) {
  av_log_set_callback(note_complaint);
  const AVStream& stream = container.stream();
  const AVCodec* decoder = avcodec_find_decoder(stream.codecpar->codec_id);
  if (!decoder)
    throw Error(fmt::format("{}: no decoder for {}", clip.facts.path, avcodec_get_name(stream.codecpar->codec_id)));
  codec_.reset(avcodec_alloc_context3(decoder));
  avcodec_parameters_to_context(codec_.get(), stream.codecpar);
  // One waits while its frame is converted, one for rows of the frame before. Each holds frames: no more than six,
  // however large the machine.
  codec_->thread_count =
      threads > 0 ? threads : std::clamp<int>(static_cast<int>(std::thread::hardware_concurrency()) + 2, 2, 6);
  codec_->pkt_timebase = stream.time_base;
  codec_->opaque = &complaints_;
  codec_->err_recognition =
      AV_EF_CRCCHECK | AV_EF_BITSTREAM | AV_EF_BUFFER | (gives_up_cleanly(decoder->id) ? AV_EF_EXPLODE : 0);
  if (const int code = avcodec_open2(codec_.get(), decoder, nullptr); code < 0)
    throw Error(fmt::format("{}: {} cannot be decoded ({})", clip.facts.path, decoder->name, message(code)));
}

bool Decoder::next() {
  while (true) {
    const int code = avcodec_receive_frame(codec_.get(), frame_.get());
    if (code == 0) break;
    if (code == AVERROR_EOF) return false;
    if (code != AVERROR(EAGAIN)) clip_.broken(message(code));
    container_.feed(*codec_);
  }
  if (frame_->flags & AV_FRAME_FLAG_CORRUPT || frame_->decode_error_flags != 0) clip_.broken("damaged data");
  consider(complaints_.take());
  return true;
}

/// A check sum that does not fit is damage; what else a decoder complains about may be meant so.
void Decoder::consider(std::string complaint) {
  if (complaint.empty()) return;
  std::erase_if(complaint, [](char c) { return c == '\n'; });
  if (complaint.find("CRC") != std::string::npos) clip_.broken(complaint);
  if (!complained_)
    clip_.facts.warnings.push_back(fmt::format("{}: its decoder complains at frame {} ({}); is the file damaged?",
                                               clip_.facts.path, clip_.index, complaint));
  complained_ = true;
}

}  // namespace parity::codec

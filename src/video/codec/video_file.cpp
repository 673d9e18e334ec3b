// Video files, by FFmpeg's libraries directly: cv::VideoCapture gives neither the coded Y plane nor bit depth, range,
// time stamps or the difference between an end and a broken file.
#include <algorithm>
#include <utility>

#include "video/codec/conversion.hpp"
#include "video/codec/decoder.hpp"
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

ClipBeingRead begin_of(const std::filesystem::path& file) {
  ClipBeingRead clip;
  clip.facts.path = file.string();
  clip.facts.kind = "video";
  return clip;
}

class VideoFile : public FrameSource {
 public:
  VideoFile(const std::filesystem::path& file, bool luma, int threads)
      : clip_(begin_of(file)), container_(clip_), decoder_(clip_, container_, threads) {
    first_ = decode();  // only a decoded frame states its picture format and colours for certain
    conversion_ = std::make_unique<Conversion>(clip_, decoder_.context(), luma);
    const AVStream& stream = container_.stream();
    if (stream.nb_frames > 0) clip_.facts.frames = stream.nb_frames;
    const AVRational rate = stream.avg_frame_rate.num > 0 ? stream.avg_frame_rate : stream.r_frame_rate;
    if (rate.num > 0 && rate.den > 0) clip_.facts.rate = av_q2d(rate);
  }

  const ClipFacts& facts() const override { return clip_.facts; }

  bool read(Frame& out) override {
    if (!std::exchange(first_, false) && !decode()) return false;
    const AVFrame& picture = decoder_.frame();
    conversion_->convert(picture, out);
    if (picture.best_effort_timestamp != AV_NOPTS_VALUE) {
      const double unit = av_q2d(container_.stream().time_base);
      const double time = static_cast<double>(picture.best_effort_timestamp) * unit;
      if (!first_time_) first_time_ = time;
      out.time = time - *first_time_;
      end_ = std::max(end_, time + std::max(static_cast<double>(picture.pkt_duration) * unit,
                                            clip_.facts.rate ? 1 / *clip_.facts.rate : 0));
    } else {
      out.time.reset();
    }
    ++clip_.index;
    return true;
  }

 private:
  /// The next frame; false at the end of the data, if that is also the end of what the container promised.
  bool decode() {
    if (decoder_.next()) return true;
    container_.check_end(end_);
    return false;
  }

  ClipBeingRead clip_;
  Container container_;
  Decoder decoder_;
  std::unique_ptr<Conversion> conversion_;
  bool first_ = false;  // is decoded, not read yet
  std::optional<double> first_time_;
  double end_ = 0;  // of the last frame, seconds
};

}  // namespace

std::unique_ptr<FrameSource> open_video(const std::filesystem::path& file, bool luma, int threads) {
  return std::make_unique<VideoFile>(file, luma, threads);
}

}  // namespace parity::codec

// The one exported name of the library of videos.
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

class Codecs : public VideoCodecs {
 public:
  std::unique_ptr<FrameSource> open(const std::filesystem::path& file, bool luma, int threads) override {
    return codec::open_video(file, luma, threads);
  }
  std::unique_ptr<VideoWriter> create(const std::filesystem::path& file, int width, int height, double rate) override {
    return codec::create_video(file, width, height, rate);
  }
};

}  // namespace
}  // namespace parity::codec

extern "C" __attribute__((visibility("default"))) parity::VideoCodecs* parity_video_codecs() {
  static parity::codec::Codecs codecs;
  return &codecs;
}

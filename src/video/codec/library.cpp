// The decoding library's one exported name.
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

class Codecs : public FrameCodecs {
 public:
  std::unique_ptr<FrameSource> open_video(const std::filesystem::path& file, bool luma, int threads) override {
    return codec::open_video(file, luma, threads);
  }
  bool read_image(const std::filesystem::path& file, Frame& frame) override { return codec::read_image(file, frame); }
  void write_png(const std::filesystem::path& file, const Frame& rgb) override { codec::write_png(file, rgb); }
  std::unique_ptr<VideoWriter> create_video(const std::filesystem::path& file, int width, int height,
                                            double rate) override {
    return codec::create_video(file, width, height, rate);
  }
  void draw_text(Frame& rgb, const std::string& text, int x, int y, double height, Colour colour) override {
    codec::draw_text(rgb, text, x, y, height, colour);
  }
  Frame resized(const Frame& image, int width, int height) override { return codec::resized(image, width, height); }
};

}  // namespace
}  // namespace parity::codec

extern "C" __attribute__((visibility("default"))) parity::FrameCodecs* parity_frame_codecs() {
  static parity::codec::Codecs codecs;
  return &codecs;
}

// The one exported name of the library of still pictures.
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

class Codecs : public PictureCodecs {
 public:
  bool read(const std::filesystem::path& file, Frame& frame) override { return codec::read_image(file, frame); }
  void write_png(const std::filesystem::path& file, const Frame& rgb) override { codec::write_png(file, rgb); }
  void draw_text(Frame& rgb, const std::string& text, int x, int y, double height, Colour colour) override {
    codec::draw_text(rgb, text, x, y, height, colour);
  }
  Frame resized(const Frame& image, int width, int height) override { return codec::resized(image, width, height); }
};

}  // namespace
}  // namespace parity::codec

extern "C" __attribute__((visibility("default"))) parity::PictureCodecs* parity_picture_codecs() {
  static parity::codec::Codecs codecs;
  return &codecs;
}

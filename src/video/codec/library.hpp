// Parts of the two decoding libraries, one file each. The only code that includes OpenCV and FFmpeg's headers.
#pragma once
#include "video/codecs.hpp"

namespace parity::codec {

std::unique_ptr<FrameSource> open_video(const std::filesystem::path& file, bool luma, int threads);
std::unique_ptr<VideoWriter> create_video(const std::filesystem::path& file, int width, int height, double rate);
bool read_image(const std::filesystem::path& file, Frame& frame);
void write_png(const std::filesystem::path& file, const Frame& rgb);
void draw_text(Frame& rgb, const std::string& text, int x, int y, double height, Colour colour);
Frame resized(const Frame& image, int width, int height);

}  // namespace parity::codec

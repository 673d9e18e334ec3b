// Still pictures and drawing, by OpenCV.
#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>

#include "core/error.hpp"
#include "video/codec/library.hpp"

namespace parity::codec {
namespace {

std::vector<uchar> contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<uchar> bytes((std::istreambuf_iterator<char>(stream)), {});
  if (!stream || bytes.empty()) throw Error(fmt::format("{}: is empty or cannot be read", file.string()));
  return bytes;
}

/// OpenCV fills what a truncated JPEG or PNG lacks with grey and reports success: the end marks are looked for here.
void check_end(const std::filesystem::path& file, const std::vector<uchar>& bytes) {
  const auto begins = [&](std::string_view mark) {
    return bytes.size() >= mark.size() &&
           std::equal(mark.begin(), mark.end(), reinterpret_cast<const char*>(bytes.data()));
  };
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const bool whole = begins("\x89PNG")        ? all.find("IEND") != std::string_view::npos
                     : begins("\xff\xd8\xff") ? all.rfind("\xff\xd9") != std::string_view::npos
                                              : true;
  if (!whole)
    throw Error(fmt::format("{}: is truncated (its end mark is missing); copy or render it again", file.string()));
}

cv::Mat decoded(const std::filesystem::path& file) {
  const std::vector<uchar> bytes = contents(file);
  check_end(file, bytes);
  cv::Mat image;
  try {
    image = cv::imdecode(bytes, cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception& error) {
    throw Error(fmt::format("{}: cannot be decoded ({})", file.string(), error.err));
  }
  if (image.empty()) throw Error(fmt::format("{}: cannot be decoded; is it a whole picture file?", file.string()));
  if (image.depth() != CV_8U && image.depth() != CV_16U)
    throw Error(
        fmt::format("{}: holds neither 8- nor 16-bit samples; save it as PNG, or as .npy with --range", file.string()));
  return image;
}

cv::Mat view(Frame& frame) {
  return {frame.height, frame.width, CV_MAKETYPE(CV_8U, frame.channels), frame.bytes.data()};
}

/// To be read only: cv::Mat knows no const.
const cv::Mat view(const Frame& frame) {
  return {frame.height, frame.width, CV_MAKETYPE(CV_8U, frame.channels), const_cast<std::byte*>(frame.bytes.data())};
}

}  // namespace

bool read_image(const std::filesystem::path& file, Frame& frame) {
  const cv::Mat image = decoded(file);
  const int given = image.channels(), channels = given <= 2 ? 1 : 3;
  const Sample sample = image.depth() == CV_8U ? Sample::u8 : Sample::u16;
  frame.shape(image.cols, image.rows, channels, sample);
  frame.zero = 0;
  frame.span = sample == Sample::u8 ? 255 : 65535;
  cv::Mat out(image.rows, image.cols, CV_MAKETYPE(image.depth(), channels), frame.bytes.data());
  if (given == 3)
    cv::cvtColor(image, out, cv::COLOR_BGR2RGB);
  else if (given == 4)
    cv::cvtColor(image, out, cv::COLOR_BGRA2RGB);
  else
    cv::extractChannel(image, out, 0);
  return given == 2 || given == 4;
}

void write_png(const std::filesystem::path& file, const Frame& rgb) {
  cv::Mat bgr;
  cv::cvtColor(view(rgb), bgr, cv::COLOR_RGB2BGR);
  const std::filesystem::path temporary = file.string() + ".part.png";
  bool written = false;
  try {
    written = cv::imwrite(temporary.string(), bgr, {cv::IMWRITE_PNG_COMPRESSION, 6});
  } catch (const cv::Exception&) {
  }
  std::error_code error;
  if (written) std::filesystem::rename(temporary, file, error);
  if (!written || error)
    throw Error(fmt::format("{}: cannot be written; choose another place with --out", file.string()));
}

void draw_text(Frame& rgb, const std::string& text, int x, int y, double height, Colour colour) {
  cv::Mat image = view(rgb);
  constexpr int kFont = cv::FONT_HERSHEY_SIMPLEX;
  int baseline = 0;
  const double unit = cv::getTextSize("H", kFont, 1, 1, &baseline).height;
  cv::putText(image, text, {x, y}, kFont, height / unit, cv::Scalar(colour[0], colour[1], colour[2]),
              height > 16 ? 2 : 1, cv::LINE_AA);
}

Frame resized(const Frame& image, int width, int height) {
  Frame out;
  out.shape(width, height, image.channels, Sample::u8);
  cv::Mat target = view(out);
  cv::resize(view(image), target, {width, height}, 0, 0, width < image.width ? cv::INTER_AREA : cv::INTER_NEAREST);
  return out;
}

}  // namespace parity::codec

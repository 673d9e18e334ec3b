#include "cli/generated_frames.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "report/sink.hpp"
#include "video/codecs.hpp"

namespace parity::cli {
namespace {

namespace fs = std::filesystem;

Frame picture_of(const at::Tensor& frame) {  // (height, width, 3) u8
  Frame picture;
  picture.shape(static_cast<int>(frame.size(1)), static_cast<int>(frame.size(0)), 3, Sample::u8);
  std::memcpy(picture.bytes.data(), frame.data_ptr(), picture.count());
  return picture;
}

// NumPy's format, version 1: magic, header padded to 64 bytes, the numbers.
void write_npy(const fs::path& file, const at::Tensor& frames) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", fmt::join(frames.sizes(), ", "));
  header.append(63 - (10 + header.size()) % 64, ' ').push_back('\n');
  std::string text("\x93NUMPY\x01\x00", 8);
  text.push_back(static_cast<char>(header.size() & 255)), text.push_back(static_cast<char>(header.size() >> 8));
  text += header;
  text.append(static_cast<const char*>(frames.data_ptr()), static_cast<size_t>(frames.nbytes()));
  write_file(file, text);
}

void write_video(const fs::path& file, const at::Tensor& pictures, double rate) {
  const auto writer =
      video_codecs().create(file, static_cast<int>(pictures.size(2)), static_cast<int>(pictures.size(1)), rate);
  if (!writer)
    throw Error(fmt::format("{}: FFmpeg's libraries here hold no H.264 encoder; give a folder", file.string()));
  for (int64_t i = 0; i < pictures.size(0); ++i) writer->write(picture_of(pictures[i]));
  writer->close();
}

}  // namespace

void check_frames_place(const std::string& place) {
  if (place.empty()) return;
  const fs::path path(place);
  const auto suffix = path.extension();
  const auto parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (suffix == ".mp4" || suffix == ".npy") {
    if (!fs::is_directory(parent))
      throw Error(fmt::format("{}: there is no folder {}; create it first", place, parent.string()));
  } else if (!suffix.empty()) {
    throw Error(fmt::format("{}: frames are written as .mp4, .npy, or PNG into a folder", place));
  }
}

void write_frames(const std::string& place, const at::Tensor& frames, double rate) {
  if (place.empty()) return;
  const fs::path path(place);
  if (path.extension() == ".npy") return write_npy(path, frames);
  const auto pictures = (frames * 255).round().to(at::kByte).contiguous();
  if (path.extension() == ".mp4") return write_video(path, pictures, rate);
  std::error_code failed;
  fs::create_directories(path, failed);
  if (failed) throw Error(fmt::format("{}: cannot be made: {}", place, failed.message()));
  for (int64_t i = 0; i < pictures.size(0); ++i)
    picture_codecs().write_png(path / fmt::format("frame{:04}.png", i), picture_of(pictures[i]));
}

}  // namespace parity::cli

// Clips for tests: small moving pictures, and files that hold them.
#pragma once
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "video/frame.hpp"

namespace parity::test {

inline Frame rgb_frame(int width, int height, const std::vector<uint8_t>& samples) {
  Frame frame;
  frame.shape(width, height, static_cast<int>(samples.size()) / (width * height), Sample::u8);
  std::memcpy(frame.bytes.data(), samples.data(), samples.size());
  return frame;
}

/// A value for each (frame, row, column, channel).
using Picture = std::function<double(int, int, int, int)>;

/// Blobs of different colours that move, brighter below and to the right: no two of frames, flips and channels agree.
inline double scene(int t, int y, int x, int k) {
  const double a = std::sin(.13 * x + .4 * t + k), b = std::cos(.17 * y - .3 * t + 2 * k),
               c = std::sin(.05 * (x + y) + .7 * t);
  return std::min(1.0, std::max(0.0, .45 + .16 * a + .14 * b + .08 * c + .0008 * x + .0012 * y + .02 * k));
}

struct Size {
  int frames = 12, height = 48, width = 64, channels = 3;
  int64_t count() const { return int64_t{frames} * height * width * channels; }
};

/// NumPy's format 1.0 by hand.
inline void write_npy(const std::filesystem::path& file, const std::string& descr, const std::string& shape,
                      const std::string& data, const std::string& fortran = "False") {
  std::string header = "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
  header.resize((header.size() + 10 + 64) / 64 * 64 - 10 - 1, ' ');
  header += '\n';
  std::ofstream out(file, std::ios::binary);
  out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(header.size() & 255)
      << static_cast<char>(header.size() >> 8) << header << data;
}

inline std::string shape_text(const Size& s) {
  return "(" + std::to_string(s.frames) + ", " + std::to_string(s.height) + ", " + std::to_string(s.width) + ", " +
         std::to_string(s.channels) + ")";
}

template <class F>
void for_each_sample(const Size& s, F f) {
  for (int t = 0; t < s.frames; ++t)
    for (int y = 0; y < s.height; ++y)
      for (int x = 0; x < s.width; ++x)
        for (int k = 0; k < s.channels; ++k) f(t, y, x, k);
}

/// uint8 (T,H,W,C); the picture's values in [0, 1], clipped.
inline std::string write_u8(const std::filesystem::path& file, const Picture& picture, const Size& s = {}) {
  std::string data;
  for_each_sample(s, [&](int t, int y, int x, int k) {
    data +=
        static_cast<char>(static_cast<uint8_t>(std::lround(std::min(1.0, std::max(0.0, picture(t, y, x, k))) * 255)));
  });
  write_npy(file, "|u1", shape_text(s), data);
  return file.string();
}

/// float32 (T,H,W,C), as they are.
inline std::string write_f32(const std::filesystem::path& file, const Picture& picture, const Size& s = {}) {
  std::string data;
  for_each_sample(s, [&](int t, int y, int x, int k) {
    const auto value = static_cast<float>(picture(t, y, x, k));
    data.append(reinterpret_cast<const char*>(&value), sizeof value);
  });
  write_npy(file, "<f4", shape_text(s), data);
  return file.string();
}

/// y4m, 4:2:0, 8 bits; `luma` gives the Y plane's bytes, chroma is grey.
inline std::string write_y4m(const std::filesystem::path& file, const Size& s,
                             const std::function<int(int, int, int)>& luma, const std::string& rate = "25:1") {
  std::ofstream out(file, std::ios::binary);
  out << "YUV4MPEG2 W" << s.width << " H" << s.height << " F" << rate << " Ip A1:1 C420jpeg\n";
  for (int t = 0; t < s.frames; ++t) {
    out << "FRAME\n";
    for (int y = 0; y < s.height; ++y)
      for (int x = 0; x < s.width; ++x) out << static_cast<char>(luma(t, y, x));
    out << std::string(static_cast<size_t>((s.width + 1) / 2 * ((s.height + 1) / 2) * 2), '\x80');
  }
  return file.string();
}

}  // namespace parity::test

// A folder of pictures, or one picture, as a clip.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "video/codecs.hpp"
#include "video/sources.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> pictures_in(const fs::path& path) {
  if (!fs::is_directory(path)) return {path};
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.is_regular_file() && is_picture_file(entry.path())) files.push_back(entry.path());
  std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
    return natural_less(a.filename().string(), b.filename().string());
  });
  if (files.empty()) throw Error(fmt::format("{}: holds no pictures (PNG, JPEG, TIFF, BMP, WebP)", path.string()));
  return files;
}

class Pictures : public FrameSource {
 public:
  explicit Pictures(const fs::path& path) : files_(pictures_in(path)) {
    const bool alpha = picture_codecs().read(files_.front(), first_);
    facts_.path = path.string();
    facts_.kind = "images";
    facts_.format = fmt::format("{} {}", files_.front().extension().string().substr(1),
                                first_.sample == Sample::u8 ? "uint8" : "uint16");
    facts_.conversion =
        first_.sample == Sample::u8 ? "as stored, [0, 255] is [0, 1]" : "as stored, [0, 65535] is [0, 1]";
    facts_.width = first_.width, facts_.height = first_.height, facts_.channels = first_.channels;
    facts_.frames = static_cast<int64_t>(files_.size());
    if (alpha) facts_.warnings.push_back(facts_.path + ": its alpha channel is left out");
  }

  const ClipFacts& facts() const override { return facts_; }

  bool read(Frame& out) override {
    if (next_ == files_.size()) return false;
    const fs::path& file = files_[next_++];
    picture_codecs().read(file, out);
    if (!out.same_size(first_) || out.sample != first_.sample)
      throw Error(fmt::format("{}: is {}x{} with {} channels, {} is {}x{} with {}; a clip has one size", file.string(),
                              out.width, out.height, out.channels, files_.front().filename().string(), first_.width,
                              first_.height, first_.channels));
    out.time.reset();
    return true;
  }

 private:
  std::vector<fs::path> files_;
  size_t next_ = 0;
  Frame first_;
  ClipFacts facts_;
};

}  // namespace

bool natural_less(const std::string& a, const std::string& b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (digit(a[i]) && digit(b[j])) {
      size_t begin_a = i, begin_b = j;
      while (i < a.size() && digit(a[i])) ++i;
      while (j < b.size() && digit(b[j])) ++j;
      while (begin_a + 1 < i && a[begin_a] == '0') ++begin_a;
      while (begin_b + 1 < j && b[begin_b] == '0') ++begin_b;
      if (i - begin_a != j - begin_b) return i - begin_a < j - begin_b;
      if (const int order = a.compare(begin_a, i - begin_a, b, begin_b, j - begin_b)) return order < 0;
      continue;
    }
    if (a[i] != b[j]) return a[i] < b[j];
    ++i, ++j;
  }
  if (a.size() - i != b.size() - j) return a.size() - i < b.size() - j;
  return a < b;  // "01" and "1"
}

std::unique_ptr<FrameSource> open_pictures(const fs::path& path) { return std::make_unique<Pictures>(path); }

}  // namespace parity

// Which reader a path gets.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "video/codecs.hpp"
#include "video/sources.hpp"

namespace parity {
namespace {

namespace fs = std::filesystem;

std::string suffix(const fs::path& file) {
  std::string text = file.extension().string();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

template <size_t n>
bool any_of(const fs::path& file, const std::array<const char*, n>& suffixes) {
  return std::find(suffixes.begin(), suffixes.end(), suffix(file)) != suffixes.end();
}

ArrayReader array_reader = nullptr;

bool is_array_file(const fs::path& file) { return any_of(file, std::array{".npy", ".npz", ".h5", ".hdf5"}); }

std::unique_ptr<FrameSource> read_array(const fs::path& file, const SourceOptions& options) {
  if (array_reader == nullptr) throw Error(fmt::format("{}: this program reads no such array", file.string()));
  return array_reader(file, options);
}

class Luma : public FrameSource {
 public:
  explicit Luma(std::unique_ptr<FrameSource> source) : source_(std::move(source)), facts_(source_->facts()) {
    if (facts_.channels != 3)
      throw Error(fmt::format("{}: luma of {} channels is not defined; use --space rgb", facts_.path, facts_.channels));
    facts_.channels = 1;
    facts_.conversion += ", then Y = 0.299 R + 0.587 G + 0.114 B, not rounded";
  }
  const ClipFacts& facts() const override { return facts_; }
  bool read(Frame& out) override {
    if (!source_->read(colour_)) return false;
    out.shape(colour_.width, colour_.height, 1, Sample::f32);
    out.zero = 0;
    out.span = 1;
    out.time = colour_.time;
    if (colour_.sample == Sample::u8) convert<uint8_t>(out);
    if (colour_.sample == Sample::u16) convert<uint16_t>(out);
    if (colour_.sample == Sample::f32) convert<float>(out);
    return true;
  }

 private:
  template <class T>
  void convert(Frame& out) const {
    const T* from = colour_.as<T>();
    float* to = out.as<float>();
    const double zero = colour_.zero, span = colour_.span;
    for (size_t i = 0; i < out.count(); ++i, from += 3)
      to[i] = static_cast<float>((.299 * from[0] + .587 * from[1] + .114 * from[2] - zero) / span);
  }

  std::unique_ptr<FrameSource> source_;
  ClipFacts facts_;
  Frame colour_;
};

}  // namespace

void read_arrays_with(ArrayReader reader) { array_reader = reader; }

bool is_picture_file(const fs::path& file) {
  return any_of(file, std::array{".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"});
}

bool is_clip_file(const fs::path& file) {
  return is_array_file(file) || any_of(file, std::array{".mp4", ".m4v", ".mov", ".mkv", ".webm", ".avi", ".y4m", ".ivf",
                                                        ".gif", ".ts", ".mpg", ".flv", ".ogv"});
}

std::unique_ptr<FrameSource> luma_of(std::unique_ptr<FrameSource> source) {
  if (source->facts().channels == 1) return source;
  return std::make_unique<Luma>(std::move(source));
}

std::unique_ptr<FrameSource> open_frames(const fs::path& path, const SourceOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) throw Error(fmt::format("{}: no such file or folder", path.string()));
  std::unique_ptr<FrameSource> source;
  if (fs::is_directory(path) || is_picture_file(path))
    source = open_pictures(path);
  else if (!is_array_file(path))
    source = video_codecs().open(path, options.luma, options.threads);
  else if (!(source = open_plain_array(path, options)))
    source = read_array(path, options);
  return options.luma && !source->facts().luma_plane ? luma_of(std::move(source)) : std::move(source);
}

}  // namespace parity

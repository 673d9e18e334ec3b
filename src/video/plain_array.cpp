// The usual array of frames, read without LibTorch: .npy, uint8, (T, H, W, 1 or 3), as numpy writes it. Loading
// LibTorch (0.2 s) and copying through tensors took half of the time of comparing 57 frames of 960x544. Whatever is
// unusual or wrong about a file is left to open_array.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "core/error.hpp"
#include "video/sources.hpp"

namespace parity {
namespace {

struct PlainHeader {
  int64_t frames = 0, height = 0, width = 0, channels = 0;
  int64_t begin = 0;  // of the samples, bytes
};

/// The first bytes of a file, when they are exactly such a header (numpy.lib.format, version 1).
std::optional<PlainHeader> plain_header(const std::string& bytes) {
  constexpr std::string_view kMagic("\x93NUMPY\x01\0", 8);
  if (bytes.size() < 10 || std::string_view(bytes).substr(0, 8) != kMagic) return std::nullopt;
  PlainHeader h;
  h.begin = 10 + static_cast<uint8_t>(bytes[8]) + 256 * static_cast<uint8_t>(bytes[9]);
  if (h.begin > static_cast<int64_t>(bytes.size())) return std::nullopt;
  const std::string text = bytes.substr(10, static_cast<size_t>(h.begin) - 10);
  int end = -1;
  std::sscanf(text.c_str(), "{'descr': '|u1', 'fortran_order': False, 'shape': (%9ld, %9ld, %9ld, %9ld), }%n",
              &h.frames, &h.height, &h.width, &h.channels, &end);
  const bool whole = end > 0 && text.find_first_not_of(" \n", static_cast<size_t>(end)) == std::string::npos;
  const auto side = [](int64_t n) { return n > 0 && n <= 65535; };
  return whole && h.frames > 0 && side(h.height) && side(h.width) && (h.channels == 1 || h.channels == 3) &&
                 h.height * h.width * h.channels <= int64_t{1} << 30
             ? std::optional(h)
             : std::nullopt;
}

class PlainArray : public FrameSource {
 public:
  PlainArray(const std::filesystem::path& file, int descriptor, const PlainHeader& header)
      : descriptor_(descriptor), header_(header) {
    facts_.path = file.string();
    facts_.kind = "npy";
    facts_.format =
        fmt::format("uint8 (T,H,W,C) = {}x{}x{}x{}", header.frames, header.height, header.width, header.channels);
    facts_.conversion = "as stored, [0, 255] is [0, 1]";
    facts_.width = static_cast<int>(header.width), facts_.height = static_cast<int>(header.height);
    facts_.channels = static_cast<int>(header.channels);
    facts_.frames = header.frames;
  }
  ~PlainArray() override { ::close(descriptor_); }
  PlainArray(const PlainArray&) = delete;
  PlainArray& operator=(const PlainArray&) = delete;

  const ClipFacts& facts() const override { return facts_; }

  bool read(Frame& out) override {
    if (next_ == header_.frames) return false;
    out.shape(facts_.width, facts_.height, facts_.channels, Sample::u8);
    out.zero = 0, out.span = 255;
    out.time.reset();
    const auto size = static_cast<int64_t>(out.bytes.size());
    for (int64_t done = 0; done < size;) {
      const ssize_t got = ::pread(descriptor_, out.bytes.data() + done, static_cast<size_t>(size - done),
                                  header_.begin + next_ * size + done);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) throw Error(facts_.path + ": ends early: the file is truncated");
      done += got;
    }
    ++next_;
    return true;
  }

 private:
  int descriptor_;
  PlainHeader header_;
  ClipFacts facts_;
  int64_t next_ = 0;
};

}  // namespace

std::unique_ptr<FrameSource> open_plain_array(const std::filesystem::path& file, const SourceOptions& options) {
  if (file.extension() != ".npy" || options.range || options.no_range ||
      !(options.layout.empty() || options.layout == "THWC"))
    return nullptr;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  std::string begin(256, '\0');
  struct stat status {};
  const ssize_t got = descriptor < 0 || ::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)
                          ? -1
                          : ::pread(descriptor, begin.data(), begin.size(), 0);
  begin.resize(static_cast<size_t>(std::max<ssize_t>(got, 0)));
  const auto header = plain_header(begin);
  if (header && status.st_size - header->begin >= header->frames * header->height * header->width * header->channels)
    return std::make_unique<PlainArray>(file, descriptor, *header);
  if (descriptor >= 0) ::close(descriptor);
  return nullptr;
}

}  // namespace parity

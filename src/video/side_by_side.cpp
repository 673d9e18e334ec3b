#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "video/canvas.hpp"
#include "video/render.hpp"

namespace parity {
namespace {

constexpr int kWidest = 2400;   // of the whole picture; wider ones cost the encoder hundreds of MB
constexpr int kSmallest = 320;  // of one side: below it captions do not fit

int even(int n) { return n + n % 2; }

}  // namespace

Frame displayed(const Frame& frame) {
  if (frame.sample == Sample::u8 && frame.channels == 3 && frame.zero == 0 && frame.span == 255) return frame;
  Frame unit, out;
  to_unit(frame, unit);
  out.shape(frame.width, frame.height, 3, Sample::u8);
  const auto channels = static_cast<size_t>(frame.channels);
  const float* from = unit.as<float>();
  uint8_t* to = out.as<uint8_t>();
  for (size_t i = 0; i < out.count() / 3; ++i, from += channels)
    for (size_t k = 0; k < 3; ++k)
      *to++ = static_cast<uint8_t>(std::lround(std::clamp(from[channels >= 3 ? k : 0], 0.0F, 1.0F) * 255));
  return out;
}

Frame amplified(const Frame& reference, const Frame& candidate, double gain) {
  Frame out;
  out.shape(reference.width, reference.height, 3, Sample::u8);
  for (size_t i = 0; i < out.count(); ++i) {
    const int d = reference.as<uint8_t>()[i] - candidate.as<uint8_t>()[i];
    out.as<uint8_t>()[i] = static_cast<uint8_t>(std::min(std::abs(d) * gain, 255.0));
  }
  return out;
}

SideBySide::SideBySide(std::filesystem::path file, double rate, double gain)
    : file_(std::move(file)), rate_(rate), gain_(gain) {}

void SideBySide::add(const ComparedPair& pair) {
  const Frame reference = displayed(pair.reference), candidate = displayed(pair.candidate);
  const double scale = std::min(1.0, kWidest / 3.0 / reference.width);
  const int enlarge = reference.width < kSmallest ? (kSmallest + reference.width - 1) / reference.width : 1;
  const int width = even(static_cast<int>(reference.width * scale)) * enlarge,
            height = even(static_cast<int>(reference.height * scale)) * enlarge;
  const int bar = even(std::clamp(width / 16, 24, 60)), line = bar / 2 - 2;
  Canvas canvas(3 * width, height + bar, {24, 24, 24});
  const double letters = std::clamp(width / 44.0, 7.0, 20.0);
  const std::string text[3] = {
      "reference",
      fmt::format("candidate   {}", caption(pair.metrics.index, pair.metrics.identical, pair.metrics.psnr, {})),
      fmt::format("|difference| x {:g}", gain_)};
  const Frame sides[3] = {reference, candidate, amplified(reference, candidate, gain_)};
  for (int i = 0; i < 3; ++i) {
    canvas.put(sides[i].width == width && sides[i].height == height ? sides[i]
                                                                    : frame_codecs().resized(sides[i], width, height),
               i * width, bar);
    canvas.text(text[i], i * width + static_cast<int>(letters), line + static_cast<int>(letters), letters,
                {240, 240, 240});
  }
  if (!writer_) writer_ = frame_codecs().create_video(file_, canvas.frame().width, canvas.frame().height, rate_);
  writer_->write(canvas.frame());
}

void SideBySide::close() {
  if (writer_) writer_->close();
  writer_.reset();
}

}  // namespace parity

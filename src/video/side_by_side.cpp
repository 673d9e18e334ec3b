#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "video/canvas.hpp"
#include "video/render.hpp"

namespace parity {
namespace {

// Of the whole picture: what the decoders of phones take, and what keeps the encoder's memory small (3840: 400 MB).
constexpr int kWidest = 1920;
constexpr int kSmallest = 320;  // of one side: below it captions do not fit

int even(int n) { return n + n % 2; }

}  // namespace

const Frame& displayed(const Frame& frame, Frame& out) {
  if (frame.sample == Sample::u8 && frame.channels == 3 && frame.zero == 0 && frame.span == 255) return frame;
  Frame unit;
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
  uint8_t brightness[256];
  for (int d = 0; d < 256; ++d) brightness[d] = static_cast<uint8_t>(std::min(d * gain, 255.0));
  const uint8_t *r = reference.as<uint8_t>(), *c = candidate.as<uint8_t>();
  for (size_t i = 0; i < out.count(); ++i) out.as<uint8_t>()[i] = brightness[std::abs(r[i] - c[i])];
  return out;
}

SideBySide::SideBySide(std::filesystem::path file, double rate, double gain)
    : file_(std::move(file)), rate_(rate), gain_(gain) {}

void SideBySide::add(const ComparedPair& pair) {
  if (impossible_) return;
  Frame own_reference, own_candidate;
  const Frame &reference = displayed(pair.reference, own_reference),
              &candidate = displayed(pair.candidate, own_candidate);
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
  const Frame difference = amplified(reference, candidate, gain_);
  const Frame* const sides[3] = {&reference, &candidate, &difference};
  for (int i = 0; i < 3; ++i) {
    if (sides[i]->width == width && sides[i]->height == height)
      canvas.put(*sides[i], i * width, bar);
    else
      canvas.put(picture_codecs().resized(*sides[i], width, height), i * width, bar);
    canvas.text(text[i], i * width + static_cast<int>(letters), line + static_cast<int>(letters), letters,
                {240, 240, 240});
  }
  if (!writer_) writer_ = video_codecs().create(file_, canvas.frame().width, canvas.frame().height, rate_);
  impossible_ = !writer_;
  if (writer_) writer_->write(canvas.frame());
}

bool SideBySide::close() {
  const bool written = writer_ != nullptr;
  if (written) writer_->close();
  writer_.reset();
  return written;
}

}  // namespace parity

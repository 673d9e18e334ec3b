#include "video/diagnose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace parity {
namespace {

constexpr double kLeastError = 1e-9;  // of a mean squared error: 90 dB, below it nothing is to be explained

double decibels(double before, double after) { return 10 * std::log10((before + kLeastError) / (after + kLeastError)); }

/// Means of 3x3 pixels around evenly spread centres, `channels` numbers each.
template <class T>
void patch_means(const Frame& frame, int channels, const FramePlacement& placement, std::vector<float>& out) {
  const double zero = frame.zero, span = frame.span;
  for (int y = 0; y < Thumbnail::kRows; ++y)
    for (int x = 0; x < Thumbnail::kColumns; ++x) {
      const int cx = (2 * x + 1) * frame.width / (2 * Thumbnail::kColumns),
                cy = (2 * y + 1) * frame.height / (2 * Thumbnail::kRows);
      const int x0 = std::max(cx - 1, 0), x1 = std::min(cx + 1, frame.width - 1), y0 = std::max(cy - 1, 0),
                y1 = std::min(cy + 1, frame.height - 1);
      double sum[3] = {};
      for (int py = y0; py <= y1; ++py)
        for (int px = x0; px <= x1; ++px) {
          const int row = placement.row(py, px, frame.height), column = placement.column(py, px, frame.width);
          const T* pixel = frame.as<T>() + (int64_t{row} * frame.width + column) * frame.channels;
          for (int k = 0; k < channels; ++k) sum[k] += static_cast<double>(pixel[k]);
        }
      for (int k = 0; k < channels; ++k)
        out.push_back(static_cast<float>((sum[k] / ((x1 - x0 + 1) * (y1 - y0 + 1)) - zero) / span));
    }
}

double mean_square(const Thumbnail& a, const Thumbnail& b) {
  double sum = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    const double d = static_cast<double>(a.values[i]) - static_cast<double>(b.values[i]);
    sum += d * d;
  }
  return a.values.empty() ? 0 : sum / static_cast<double>(a.values.size());
}

double error_of(const ClipHypothesis& h, const Thumbnail& r, const Thumbnail& c) {
  double sum = 0;
  size_t i = 0;
  const auto channels = static_cast<size_t>(r.channels);
  for (size_t y = 0; y < Thumbnail::kRows; ++y)
    for (size_t x = 0; x < Thumbnail::kColumns; ++x)
      for (size_t k = 0; k < channels; ++k, ++i) {
        const size_t from_y = h.flip_y ? Thumbnail::kRows - 1 - y : y,
                     from_x = h.flip_x ? Thumbnail::kColumns - 1 - x : x;
        const size_t from_k = channels == 3 ? static_cast<size_t>(h.order[k]) : k;
        const double v = r.values[(from_y * Thumbnail::kColumns + from_x) * channels + from_k];
        const double d = (h.value[k] ? h.value[k](v) : v) - static_cast<double>(c.values[i]);
        sum += d * d;
      }
  return sum / static_cast<double>(r.values.size());
}

/// Means of 4x4 of its pixels.
std::vector<float> small(const Thumbnail& whole) {
  constexpr int kSide = 4, kColumns = Thumbnail::kColumns / kSide;
  std::vector<float> out(whole.values.size() / (kSide * kSide));
  for (size_t i = 0; i < whole.values.size(); ++i) {
    const auto channels = static_cast<size_t>(whole.channels);
    const size_t k = i % channels, x = i / channels % Thumbnail::kColumns, y = i / channels / Thumbnail::kColumns;
    out[(y / kSide * kColumns + x / kSide) * channels + k] += whole.values[i] / (kSide * kSide);
  }
  return out;
}

ClipHypothesis hypothesis_of(const FramePlacement& placement) {
  ClipHypothesis h{.kind = placement.transposed ? "flip" : "shift",
                   .text = "candidate's rows and columns are exchanged"};
  h.placement = placement;
  if (placement.transposed) return h;
  const auto along = [](int by, const char* positive, const char* negative) {
    const int size = std::abs(by);
    return by == 0 ? "" : fmt::format(" {} pixel{} {}", size, size == 1 ? "" : "s", by > 0 ? positive : negative);
  };
  h.text = "candidate is moved by" + along(placement.right, "to the right", "to the left") +
           (placement.right != 0 && placement.down != 0 ? " and" : "") + along(placement.down, "down", "up");
  return h;
}

std::string frames_text(int n) { return n == 1 ? "one frame" : fmt::format("{} frames", n); }

}  // namespace

Thumbnail thumbnail(const Frame& frame, const FramePlacement& placement) {
  Thumbnail out;
  out.channels = frame.channels == 1 ? 1 : std::min(frame.channels, 3) == 3 ? 3 : 1;
  out.values.reserve(static_cast<size_t>(Thumbnail::kRows * Thumbnail::kColumns * out.channels));
  if (frame.sample == Sample::u8) patch_means<uint8_t>(frame, out.channels, placement, out.values);
  if (frame.sample == Sample::u16) patch_means<uint16_t>(frame, out.channels, placement, out.values);
  if (frame.sample == Sample::f32) patch_means<float>(frame, out.channels, placement, out.values);
  return out;
}

std::vector<PlacedFrame> placed(const Frame& reference) {
  constexpr int kFar = 4;  // pixels
  std::vector<PlacedFrame> all;
  for (int down = -kFar; down <= kFar; ++down)
    for (int right = -kFar; right <= kFar; ++right)
      if (down != 0 || right != 0) all.push_back({{right, down}, {}});
  if (reference.width == reference.height) all.push_back({{0, 0, true}, {}});
  for (PlacedFrame& p : all) p.reference = thumbnail(reference, p.placement);
  return all;
}

void Diagnosis::add(const Thumbnail& reference, const Thumbnail& candidate, const std::vector<PlacedFrame>& placed) {
  if (frames_ == 0) {
    channels_ = reference.channels;
    for (ClipHypothesis& h : simple_hypotheses(channels_)) trials_.push_back({std::move(h)});
  }
  const double error = mean_square(reference, candidate);
  if (frames_ < kTriedAll || frames_ % kTriedEvery == 0) try_all(reference, candidate, error);
  add_offsets(reference, candidate, error);
  add_placed(candidate, placed, error);
  if (small_[0].size() < kKept) small_[0].push_back(small(reference)), small_[1].push_back(small(candidate));
  ++frames_;
}

void Diagnosis::add_placed(const Thumbnail& candidate, const std::vector<PlacedFrame>& placed, double error) {
  if (placed_.empty())
    for (const PlacedFrame& p : placed) placed_.push_back({hypothesis_of(p.placement)});
  for (size_t i = 0; i < placed.size() && i < placed_.size(); ++i)
    placed_[i].own += error, placed_[i].error += mean_square(placed[i].reference, candidate);
}

void Diagnosis::try_all(const Thumbnail& reference, const Thumbnail& candidate, double error) {
  ++tried_;
  error_ += error;
  for (Trial& trial : trials_) trial.own += error, trial.error += error_of(trial.hypothesis, reference, candidate);
  for (size_t i = 0; i < reference.values.size(); ++i) {
    const double r = reference.values[i], c = candidate.values[i];
    Sums& s = sums_[i % static_cast<size_t>(channels_)];
    s.n += 1, s.r += r, s.c += c, s.rr += r * r, s.cc += c * c, s.rc += r * c;
  }
}

void Diagnosis::note_offset(int64_t frame, int offset, double error) {
  Shift& shift = shifts_[static_cast<size_t>(frame)];
  if (error < shift.best) shift.best = error, shift.offset = offset;
}

void Diagnosis::add_offsets(const Thumbnail& reference, const Thumbnail& candidate, double error) {
  shifts_.push_back({error, error, 0});
  for (int back = 1; back <= static_cast<int>(references_.size()); ++back) {
    const size_t at = references_.size() - static_cast<size_t>(back);
    note_offset(frames_, back, mean_square(references_[at], candidate));  // this frame shows an older one: late
    note_offset(frames_ - back, -back,
                mean_square(reference, candidates_[at]));  // an older frame showed this one: early
  }
  references_.push_back(reference);
  candidates_.push_back(candidate);
  if (references_.size() > kOffsets) references_.pop_front(), candidates_.pop_front();
}

/// An offset that most frames from some frame to the end agree on, and no frame before it.
std::optional<ClipHypothesis> Diagnosis::shifted() const {
  const auto decided = [](const Shift& s) { return s.offset != 0 && decibels(s.own, s.best) >= 2 * kGain; };
  std::array<int64_t, 2 * kOffsets + 1> votes{};
  for (const Shift& s : shifts_)
    if (decided(s)) ++votes[static_cast<size_t>(s.offset + kOffsets)];
  const auto most = std::max_element(votes.begin(), votes.end());
  const int offset = static_cast<int>(most - votes.begin()) - kOffsets;
  if (*most < 2) return std::nullopt;
  const auto agrees = [&](const Shift& s) { return decided(s) && s.offset == offset; };
  const int64_t begin = std::find_if(shifts_.begin(), shifts_.end(), agrees) - shifts_.begin();
  if (5 * *most < 4 * (frames_ - begin) - 5 * std::abs(offset)) return std::nullopt;  // one in five may be undecided
  ClipHypothesis h;
  h.kind = begin > std::abs(offset) ? "jump" : "offset";
  h.offset = offset;
  h.begin = h.kind == "jump" ? begin : 0;
  h.text = fmt::format("candidate is {} {}{}", frames_text(std::abs(offset)), offset > 0 ? "late" : "early",
                       h.kind == "jump"
                           ? fmt::format(" from frame {} on ({})", begin,
                                         offset > 0 ? "frames were repeated or inserted" : "frames were dropped")
                           : "");
  return h;
}

/// candidate = gain * reference + shift in each channel, by least squares.
Diagnosis::Trial Diagnosis::fitted() const {
  Trial trial{{.kind = "brightness", .text = "candidate's brightness or contrast differs:"}, 0, error_};
  for (size_t k = 0; k < static_cast<size_t>(channels_); ++k) {
    const Sums& s = sums_[k];
    const double variance = s.rr - s.r * s.r / s.n, covariance = s.rc - s.r * s.c / s.n;
    const double gain = variance > 1e-12 ? covariance / variance : 1, shift = (s.c - gain * s.r) / s.n;
    trial.hypothesis.value[k] = [gain, shift](double v) { return gain * v + shift; };
    trial.hypothesis.text +=
        fmt::format(" {}{:.3f} x {:+.3f}", channels_ == 3 ? fmt::format("{} = ", "RGB"[k]) : "", gain, shift);
    trial.error +=
        s.cc - 2 * gain * s.rc - 2 * shift * s.c + gain * gain * s.rr + 2 * gain * shift * s.r + shift * shift * s.n;
  }
  trial.error = std::max(trial.error, 0.0) / (sums_[0].n * channels_) * static_cast<double>(tried_);
  return trial;
}

// The frames from last to first, by small pictures of all of them; no gain where these were too many to keep.
Diagnosis::Trial Diagnosis::reversed() const {
  Trial trial{{.kind = "order", .text = "candidate runs backwards: the last frame comes first"}};
  trial.hypothesis.reversed = true;
  const auto& [references, candidates] = small_;
  if (static_cast<size_t>(frames_) > references.size()) return trial;
  for (size_t i = 0; i < references.size(); ++i)
    for (size_t k = 0; k < references[i].size(); ++k) {
      const auto square = [&](size_t from) {
        const double d = static_cast<double>(references[from][k]) - static_cast<double>(candidates[i][k]);
        return d * d / static_cast<double>(references[i].size());
      };
      trial.own += square(i), trial.error += square(references.size() - 1 - i);
    }
  return trial;
}

double Diagnosis::Trial::gain() const { return decibels(own, error); }

std::optional<ClipHypothesis> Diagnosis::best() const {
  if (frames_ == 0) return std::nullopt;
  std::vector<Trial> named = trials_;
  named.insert(named.end(), placed_.begin(), placed_.end());
  named.push_back(reversed());
  const auto least = std::ranges::max_element(named, {}, &Trial::gain);
  const Trial fit = fitted();
  // A named fault is preferred to a fit with free numbers that is hardly better.
  const Trial& chosen = fit.gain() > least->gain() + kGain ? fit : *least;
  if (auto h = shifted()) {
    Trial aligned;
    for (const Shift& s : shifts_) aligned.own += s.own, aligned.error += s.offset == h->offset ? s.best : s.own;
    if (aligned.gain() >= chosen.gain() - kGain || chosen.gain() < kGain) return h;
  }
  if (chosen.gain() < kGain) return std::nullopt;
  return chosen.hypothesis;
}

std::optional<ClipFinding> odd_frames(const std::vector<FrameMetrics>& frames) {
  constexpr double kApart = 10;  // dB below the median
  if (frames.size() < 3) return std::nullopt;
  std::vector<double> errors;
  for (const FrameMetrics& m : frames) errors.push_back(m.mse);
  std::nth_element(errors.begin(), errors.begin() + static_cast<int64_t>(errors.size() / 2), errors.end());
  const double median = errors[errors.size() / 2];
  std::vector<int64_t> odd;
  double worst = 0;
  for (const FrameMetrics& m : frames)
    if (m.mse > 1e-7 && decibels(m.mse, median) > kApart) odd.push_back(m.index), worst = std::max(worst, m.mse);
  if (odd.empty() || odd.size() * 4 > frames.size()) return std::nullopt;
  std::string list;
  for (size_t i = 0; i < std::min<size_t>(odd.size(), 8); ++i) list += fmt::format("{}{}", i ? ", " : "", odd[i]);
  if (odd.size() > 8) list += fmt::format(" and {} more", odd.size() - 8);
  return ClipFinding{
      "frames",
      fmt::format("{} {} far worse than the rest: PSNR down to {:.1f} dB, {}", odd.size() == 1 ? "frame" : "frames",
                  list + (odd.size() == 1 ? " is" : " are"), -10 * std::log10(worst),
                  median > 0 ? fmt::format("the median frame has {:.1f} dB", -10 * std::log10(median))
                             : "the median frame is identical"),
      {},
      {}};
}

std::optional<ClipFinding> confirmed(const ClipHypothesis& hypothesis, double before, double after) {
  if (decibels(before, after) < Diagnosis::kGain) return std::nullopt;
  ClipFinding out{hypothesis.kind, "", -10 * std::log10(before), {}};
  if (after > 0) out.psnr_after = -10 * std::log10(after);
  out.text = fmt::format("{}: PSNR {:.1f} → {} when {}", hypothesis.text, *out.psnr_before,
                         out.psnr_after ? fmt::format("{:.1f} dB", *out.psnr_after) : "identical",
                         hypothesis.offset != 0 ? "aligned" : "undone");
  return out;
}

}  // namespace parity

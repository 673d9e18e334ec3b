// Why do two clips differ? Simple transformations of the reference are tried on thumbnails during the first pass; the
// one that explains most is then checked at full size in a second pass. Only what holds there is reported.
#pragma once
#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "video/clip.hpp"

namespace parity {

/// A few pixels of a frame, spread evenly and symmetrically: kRows x kColumns x channels (1 or 3), in [0, 1].
struct Thumbnail {
  static constexpr int kRows = 32, kColumns = 48;
  int channels = 0;
  std::vector<float> values;
};

/// Where a frame's pixels come from: (row, column) of the result is (row - down, column - right) of the frame, its
/// borders repeated, or (column, row) of a square one.
struct FramePlacement {
  int right = 0, down = 0;
  bool transposed = false;

  int row(int y, int x, int height) const { return std::clamp(transposed ? x : y - down, 0, height - 1); }
  int column(int y, int x, int width) const { return std::clamp(transposed ? y : x - right, 0, width - 1); }
};
Thumbnail thumbnail(const Frame& frame, const FramePlacement& placement = {});

/// candidate[i] = change(reference[i - offset]), from candidate frame `begin` on.
struct ClipHypothesis {
  std::string kind, text;  // text: "candidate is one frame late"; the figures are added
  int offset = 0;
  int64_t begin = 0;
  std::array<int, 3> order{0, 1, 2};                     // candidate's channel k is the reference's order[k]
  bool flip_x = false, flip_y = false;                   // mirrored left-right, upside down
  std::array<std::function<double(double)>, 3> value{};  // of each channel; empty: as it is
  FramePlacement placement{};
  bool reversed = false;  // the last frame first
};

/// Of the first frames: the reference moved by a few pixels, or with rows and columns exchanged. Pixels that lie next
/// to each other are the same one in a small picture of the whole.
struct PlacedFrame {
  FramePlacement placement;
  Thumbnail reference;
};
std::vector<PlacedFrame> placed(const Frame& reference);

class Diagnosis {
 public:
  /// Frames in order; `placed`: of the first kPlaced.
  void add(const Thumbnail& reference, const Thumbnail& candidate, const std::vector<PlacedFrame>& placed = {});
  /// The hypothesis that lowers the error of the thumbnails most, when by at least kGain dB.
  std::optional<ClipHypothesis> best() const;

  static constexpr double kGain = 3;
  static constexpr int kOffsets = 5;
  /// What holds for a whole clip is tried on its first frames and on a share of the others: trying takes 0.3 ms,
  /// and measuring a frame of 960x544 5 ms.
  static constexpr int64_t kTriedAll = 16, kTriedEvery = 8, kPlaced = 4;

 private:
  struct Trial {
    ClipHypothesis hypothesis;
    double error = 0, own = 0;  // with it and without it, of the frames that it was tried on

    double gain() const;  // dB
  };
  void try_all(const Thumbnail& reference, const Thumbnail& candidate, double error);
  void add_offsets(const Thumbnail& reference, const Thumbnail& candidate, double error);
  void note_offset(int64_t frame, int offset, double error);
  void add_placed(const Thumbnail& candidate, const std::vector<PlacedFrame>& placed, double error);
  std::optional<ClipHypothesis> shifted() const;
  Trial fitted() const;
  Trial reversed() const;

  std::vector<Trial> trials_, placed_;
  double error_ = 0;  // of the frames that were tried, as those of the trials
  int64_t frames_ = 0, tried_ = 0;
  std::deque<Thumbnail> references_, candidates_;  // the last kOffsets
  struct Shift {
    double own = 0, best = 0;  // error without an offset, and with the best
    int offset = 0;
  };
  std::vector<Shift> shifts_;                 // by candidate frame
  std::vector<std::vector<float>> small_[2];  // of each frame, reference and candidate, up to kKept
  static constexpr size_t kKept = 8192;       // 1 kB a frame
  struct Sums {
    double n = 0, r = 0, c = 0, rr = 0, cc = 0, rc = 0;
  };
  std::array<Sums, 3> sums_{};
  int channels_ = 0;
};

/// All hypotheses but offsets and fits, for `channels` channels.
std::vector<ClipHypothesis> simple_hypotheses(int channels);

/// The reference under a hypothesis, but for its offset; fp32 in [0, 1].
Frame changed(const Frame& reference, const ClipHypothesis& hypothesis);

/// Both clips again, from the beginning: mean MSE of the candidate against the changed reference; 1, which confirms
/// nothing, where a reversed clip does not fit into 1 GiB.
double error_under(FrameSource& reference, FrameSource& candidate, const ClipHypothesis& hypothesis);

/// Frames far below the rest, from their numbers alone.
std::optional<ClipFinding> odd_frames(const std::vector<FrameMetrics>& frames);

/// The sentence with its figures; nullopt when full size does not confirm it.
std::optional<ClipFinding> confirmed(const ClipHypothesis& hypothesis, double error_before, double error_after);

}  // namespace parity

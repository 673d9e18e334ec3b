// What people look at: side-by-side video, contact sheet of the worst frames, heat map of a difference.
#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "video/clip.hpp"
#include "video/codecs.hpp"

namespace parity {

/// The frame as 8-bit RGB, itself or made in `storage`: [0, 1] clipped; grey thrice; of latents the first three
/// channels.
const Frame& displayed(const Frame& frame, Frame& storage);
/// |candidate - reference| times `gain`, clipped. 8-bit RGB of one size.
Frame amplified(const Frame& reference, const Frame& candidate, double gain);

/// reference | candidate | difference, a line of text above; browsers play it.
class SideBySide {
 public:
  /// The name of each side is written above it. Throws Error when the file cannot be written.
  SideBySide(std::filesystem::path file, double rate, double gain);
  void add(const ComparedPair& pair);
  /// False when there is no video: no frames, or no H.264 encoder in FFmpeg's libraries.
  bool close();

 private:
  std::filesystem::path file_;
  double rate_, gain_;
  std::unique_ptr<VideoWriter> writer_;
  bool impossible_ = false;
};

/// Keeps the frames with the largest MSE, a handful: as small pictures, and the worst one whole.
class WorstFrames {
 public:
  explicit WorstFrames(double gain, size_t keep = 4) : gain_(gain), keep_(keep) {}
  void add(const ComparedPair& pair);
  bool empty() const { return kept_.empty(); }
  /// One row a frame: reference, candidate, difference times the gain.
  void write_contact_sheet(const std::filesystem::path& file) const;
  /// Those panels as files in `folder`, whose names begin with `prefix`; the worst frame first.
  std::vector<FramePictures> write_frames(const std::filesystem::path& folder, const std::string& prefix) const;
  /// Largest channel difference of the worst frame in false colours, with a scale bar.
  void write_heat_map(const std::filesystem::path& file) const;

 private:
  struct Kept {
    std::array<Frame, 3> panels;
    FrameMetrics metrics;
  };
  double gain_;
  size_t keep_;
  std::vector<Kept> kept_;       // worst first
  Frame reference_, candidate_;  // of the worst
};

}  // namespace parity

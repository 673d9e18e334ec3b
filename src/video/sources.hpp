// Opening a clip, whatever holds it.
#pragma once
#include <array>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "video/frame.hpp"

namespace parity {

struct SourceOptions {
  bool luma = false;   // Y instead of RGB
  std::string layout;  // of an array: letters T H W C, and B for an axis of length 1; "": T,H,W,C
  std::optional<std::array<double, 2>> range;  // which values mean 0 and 1
  bool no_range = false;                       // floats without a range: neither PSNR nor SSIM
  std::string dataset = "frames";              // in an HDF5 file
  int threads = 0;                             // of the decoder; 0: as many as it likes
};

/// A video file, a picture, a folder of pictures (natural order), .npy, .npz, HDF5. Throws Error.
std::unique_ptr<FrameSource> open_frames(const std::filesystem::path& path, const SourceOptions& options);

/// By suffix: may open_frames read this file?
bool is_clip_file(const std::filesystem::path& file);
bool is_picture_file(const std::filesystem::path& file);

/// "frame9" before "frame10".
bool natural_less(const std::string& a, const std::string& b);

std::unique_ptr<FrameSource> open_pictures(const std::filesystem::path& path);
/// The usual .npy of uint8 frames, without LibTorch; null for every other file, which open_array reads or refuses.
std::unique_ptr<FrameSource> open_plain_array(const std::filesystem::path& file, const SourceOptions& options);

/// Who reads the other arrays (.npy of floats, .npz, HDF5): `open_array` in a program with LibTorch. To be set once,
/// when the program starts; without it open_frames refuses such files.
using ArrayReader = std::unique_ptr<FrameSource> (*)(const std::filesystem::path& file, const SourceOptions& options);
void read_arrays_with(ArrayReader reader);
/// Any array, through LibTorch. Throws Error.
std::unique_ptr<FrameSource> open_array(const std::filesystem::path& file, const SourceOptions& options);

/// Y = 0.299 R + 0.587 G + 0.114 B (BT.601), not rounded; one channel stays what it is.
std::unique_ptr<FrameSource> luma_of(std::unique_ptr<FrameSource> source);

}  // namespace parity

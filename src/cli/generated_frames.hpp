// Frames of a generation on disk.
#pragma once
#include <ATen/ATen.h>

#include <string>

namespace parity::cli {

/// Throws Error when nothing can be written there: before hours of computing.
void check_frames_place(const std::string& place);

/// frames: (frames, height, width, 3) fp32 in [0, 1]. `place`: a file .mp4 (H.264) or .npy (as they are), or a folder,
/// made if need be, for frame0000.png, …; "": nowhere. Throws Error when it cannot be written.
void write_frames(const std::string& place, const at::Tensor& frames, double rate);

}  // namespace parity::cli

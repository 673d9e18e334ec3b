// A first reading of a foreign file by a process that may die of it. Private to src/dump.
#pragma once
#include <filesystem>

namespace parity::hdf5 {

/// Reads all structure of an HDF5 file (groups, attributes, types, chunk indices; no tensor data) in a child process.
/// Throws Error when groups lie more than 64 levels deep, and when the child crashes or takes over two minutes of
/// processor time: HDF5 1.10.8 does on damaged files (of 1500 recordings with 1-4 flipped bytes 3 crashed it, in
/// H5HG_read). What HDF5 reports as an error is left to the caller's own reading. Not to be called while threads are
/// being started (set_threads comes after the files are opened): the child has none of them, but each lock that one
/// held at that moment. glibc knows this, AddressSanitizer's allocator does not, and the child waits for ever.
void survive_trial(const std::filesystem::path& file);

}  // namespace parity::hdf5

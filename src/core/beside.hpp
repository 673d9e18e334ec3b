// Parts of the program in files of their own: libraries opened when first used, the whole program behind its quick
// start, the embedded recordings. An installed program has them beside it.
#pragma once
#include <filesystem>

namespace parity {

/// The file or folder of this name beside the running program, else `built`, where it was built: a build folder may be
/// moved.
std::filesystem::path beside_program(const std::filesystem::path& built);

}  // namespace parity

#include "video/codecs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/error.hpp"

namespace parity {
namespace {

using Make = FrameCodecs* (*)();

/// Beside the program first: a build folder may have been moved.
void* open_library() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path built = PARITY_FRAMES_LIBRARY;
  const auto beside = program.parent_path() / built.filename();
  if (!error && std::filesystem::exists(beside, error))
    if (void* library = ::dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return ::dlopen(built.c_str(), RTLD_NOW | RTLD_LOCAL);
}

FrameCodecs* load() {
  void* library = open_library();
  if (!library)
    throw Error(
        fmt::format("{}: cannot be loaded ({}); build the target parity-frames", PARITY_FRAMES_LIBRARY, ::dlerror()));
  const auto make = reinterpret_cast<Make>(::dlsym(library, "parity_frame_codecs"));
  if (!make)
    throw Error(fmt::format("{}: is of another version; build the target parity-frames", PARITY_FRAMES_LIBRARY));
  return make();
}

}  // namespace

FrameCodecs& frame_codecs() {
  static FrameCodecs* const codecs = load();  // lives as long as the process
  return *codecs;
}

}  // namespace parity

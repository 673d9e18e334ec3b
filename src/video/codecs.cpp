#include "video/codecs.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "core/beside.hpp"
#include "core/error.hpp"

namespace parity {
namespace {

/// The codecs that the library's one exported name hands out; they live as long as the process.
template <class Codecs>
Codecs* load(const std::filesystem::path& built, const char* name) {
  const auto file = beside_program(built);
  void* library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library)
    throw Error(fmt::format("{}: cannot be loaded ({}); build the target parity-check", file.string(), ::dlerror()));
  const auto make = reinterpret_cast<Codecs* (*)()>(::dlsym(library, name));
  if (!make) throw Error(fmt::format("{}: is of another version; build the target parity-check", file.string()));
  return make();
}

}  // namespace

VideoCodecs& video_codecs() {
  static VideoCodecs* const codecs = load<VideoCodecs>(PARITY_VIDEOS_LIBRARY, "parity_video_codecs");
  return *codecs;
}

PictureCodecs& picture_codecs() {
  static PictureCodecs* const codecs = load<PictureCodecs>(PARITY_PICTURES_LIBRARY, "parity_picture_codecs");
  return *codecs;
}

}  // namespace parity

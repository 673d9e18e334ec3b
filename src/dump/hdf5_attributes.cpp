// Attributes as h5py (variable-length UTF-8) and C or C++ programs (fixed length) write them.
#include <fmt/format.h>

#include "core/error.hpp"
#include "dump/hdf5.hpp"

namespace parity::hdf5 {
namespace {

// The format keeps an attribute in an object header, which holds 64 KiB; dense storage could claim anything.
constexpr hsize_t kMostElements = 1 << 16;

Handle open_attribute(hid_t object, const char* name, const std::string& where) {
  const htri_t exists = H5Aexists(object, name);
  if (exists == 0) return {};
  Handle attribute(exists > 0 ? H5Aopen(object, name, H5P_DEFAULT) : -1);
  if (!attribute) fail(fmt::format("{}: attribute '{}' cannot be opened", where, name));
  return attribute;
}

hsize_t element_count(hid_t attribute) {
  const Handle space(H5Aget_space(attribute));
  const hssize_t count = space ? H5Sget_simple_extent_npoints(space.get()) : -1;
  return count < 0 ? 0 : static_cast<hsize_t>(count);
}

}  // namespace

std::optional<std::string> string_attribute(hid_t object, const char* name, const std::string& where) {
  const Handle attribute = open_attribute(object, name, where);
  if (!attribute) return std::nullopt;
  const Handle type(H5Aget_type(attribute.get()));
  if (!type || H5Tget_class(type.get()) != H5T_STRING || element_count(attribute.get()) != 1)
    throw Error(fmt::format("{}: attribute '{}' is not a string", where, name));
  if (H5Tis_variable_str(type.get()) > 0) {
    char* text = nullptr;
    const Handle memory_type(H5Tcopy(type.get()));
    if (H5Aread(attribute.get(), memory_type.get(), &text) < 0)
      fail(fmt::format("{}: attribute '{}' cannot be read", where, name));
    std::string result(text == nullptr ? "" : text);
    H5free_memory(text);
    return result;
  }
  const size_t size = H5Tget_size(type.get());
  if (size == 0 || size > kMostElements) throw Error(fmt::format("{}: attribute '{}' has an absurd size", where, name));
  std::string text(size, '\0');
  if (H5Aread(attribute.get(), type.get(), text.data()) < 0)
    fail(fmt::format("{}: attribute '{}' cannot be read", where, name));
  text.resize(std::min(text.find('\0'), text.size()));
  return text;
}

std::optional<std::vector<int64_t>> integer_attribute(hid_t object, const char* name, const std::string& where) {
  const Handle attribute = open_attribute(object, name, where);
  if (!attribute) return std::nullopt;
  const Handle type(H5Aget_type(attribute.get()));
  const hsize_t count = element_count(attribute.get());
  if (!type || H5Tget_class(type.get()) != H5T_INTEGER || count > kMostElements)
    throw Error(fmt::format("{}: attribute '{}' is not a short list of integers", where, name));
  std::vector<int64_t> values(count);
  if (count > 0 && H5Aread(attribute.get(), H5T_NATIVE_INT64, values.data()) < 0)
    fail(fmt::format("{}: attribute '{}' cannot be read", where, name));
  return values;
}

}  // namespace parity::hdf5

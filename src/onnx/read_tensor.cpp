// The elements of a tensor: in `raw_data`, in a list of numbers, or in another file (onnx/onnx.proto, TensorProto).
#include "onnx/read_tensor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <fstream>
#include <limits>

#include "core/error.hpp"
#include "core/named.hpp"
#include "core/precision.hpp"
#include "dump/allocate.hpp"
#include "onnx/dtypes.hpp"

namespace parity::onnx {
namespace {

using ::onnx::TensorProto;

uint64_t bytes_of(at::IntArrayRef shape, at::ScalarType dtype, const std::string& where) {
  uint64_t bytes = at::elementSize(dtype);
  for (const int64_t size : shape) {
    if (size < 0) throw Error(fmt::format("{}: has the shape [{}]", where, fmt::join(shape, ", ")));
    if (size != 0 && bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max() / size))
      throw Error(fmt::format("{}: the shape [{}] is larger than any memory", where, fmt::join(shape, ", ")));
    bytes *= static_cast<uint64_t>(size);
  }
  return bytes;
}

[[noreturn]] void wrong_size(const std::string& where, uint64_t have, uint64_t want, const char* unit) {
  throw Error(
      fmt::format("{}: holds {} {}, its shape and dtype ask for {}: the file is damaged", where, have, unit, want));
}

// `list`: one number an element, of a type at least as wide; half-width floats lie in it as their bits.
template <class To, class List>
at::Tensor from_list(const List& list, at::IntArrayRef shape, at::ScalarType dtype, const std::string& where) {
  const auto count = static_cast<uint64_t>(c10::multiply_integers(shape));
  if (static_cast<uint64_t>(list.size()) != count) wrong_size(where, list.size(), count, "numbers");
  at::Tensor tensor = empty_for(shape, dtype, where);
  std::transform(list.begin(), list.end(), static_cast<To*>(tensor.mutable_data_ptr()),
                 [](auto number) { return static_cast<To>(number); });
  return tensor;
}

at::Tensor from_lists(const TensorProto& tensor, at::IntArrayRef shape, at::ScalarType dtype,
                      const std::string& where) {
  if (dtype == at::kFloat) return from_list<float>(tensor.float_data(), shape, dtype, where);
  if (dtype == at::kDouble) return from_list<double>(tensor.double_data(), shape, dtype, where);
  if (dtype == at::kLong) return from_list<int64_t>(tensor.int64_data(), shape, dtype, where);
  if (dtype == at::kUInt64) return from_list<uint64_t>(tensor.uint64_data(), shape, dtype, where);
  if (dtype == at::kUInt32) return from_list<uint32_t>(tensor.uint64_data(), shape, dtype, where);
  if (dtype == at::kBool) return from_list<uint8_t>(tensor.int32_data(), shape, at::kByte, where).ne(0);
  if (dtype == at::kInt) return from_list<int32_t>(tensor.int32_data(), shape, dtype, where);
  if (at::elementSize(dtype) == 2) return from_list<uint16_t>(tensor.int32_data(), shape, dtype, where);
  return from_list<uint8_t>(tensor.int32_data(), shape, dtype, where);
}

struct Place {
  std::string location;
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

uint64_t number(const std::string& text, const std::string& where) {
  uint64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size())
    throw Error(fmt::format("{}: '{}' is no place in a file", where, text.substr(0, 40)));
  return value;
}

Place place_of(const TensorProto& tensor, const std::string& where) {
  Place place;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") place.location = entry.value();
    if (entry.key() == "offset") place.offset = number(entry.value(), where);
    if (entry.key() == "length") place.length = number(entry.value(), where);
  }
  const std::filesystem::path path(place.location);
  bool leaves = path.empty() || path.is_absolute();  // a model must not read what lies elsewhere
  for (const auto& part : path) leaves = leaves || part == "..";
  if (leaves)
    throw Error(fmt::format("{}: lies in '{}', which is no file in the model's folder", where, place.location));
  return place;
}

bool is_bool_but_not(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kBool && tensor.numel() > 0 && tensor.view(at::kByte).gt(1).any().item<bool>();
}

}  // namespace

at::Tensor TensorReader::external(const TensorProto& tensor, at::ScalarType dtype, uint64_t bytes,
                                  const std::string& where) const {
  const Place place = place_of(tensor, where);
  const std::filesystem::path file = file_.parent_path() / place.location;
  if (place.length && *place.length != bytes) wrong_size(where, *place.length, bytes, "bytes");
  std::error_code problem;
  if (!std::filesystem::is_regular_file(file, problem))
    throw Error(fmt::format("{}: lies in {}, and there is no such file", where, file.string()));
  const uint64_t size = std::filesystem::file_size(file, problem);
  if (problem || place.offset > size || size - place.offset < bytes)
    throw Error(fmt::format("{}: {} ends before its {} bytes at {}: the file is truncated", where, file.string(), bytes,
                            place.offset));
  const std::vector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  at::Tensor read = empty_for(shape, dtype, where);
  std::ifstream stream(file, std::ios::binary);
  stream.seekg(static_cast<std::streamoff>(place.offset));
  stream.read(static_cast<char*>(read.mutable_data_ptr()), static_cast<std::streamsize>(bytes));
  if (!stream) throw Error(fmt::format("{}: {} cannot be read", where, file.string()));
  return read;
}

at::Tensor TensorReader::read(const TensorProto& tensor) const {
  const std::string where = fmt::format("{}: tensor '{}'", file_.string(), tensor.name());
  const std::vector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
  if (tensor.data_type() == TensorProto::STRING) return {};  // nothing that is computed with here
  const at::ScalarType dtype = named({where}, [&] { return dtype_of(tensor.data_type()); });
  const uint64_t bytes = bytes_of(shape, dtype, where);
  at::Tensor read;
  if (tensor.data_location() == TensorProto::EXTERNAL) {
    read = external(tensor, dtype, bytes, where);
  } else if (tensor.has_raw_data()) {
    const std::string& raw = tensor.raw_data();
    if (raw.size() != bytes) wrong_size(where, raw.size(), bytes, "bytes");
    // In the message's memory where it lies aligned. Nothing writes to it.
    read = at::from_blob(
        const_cast<char*>(raw.data()), shape, [owner = owner_](void*) {}, at::dtype(dtype));
    if (reinterpret_cast<uintptr_t>(raw.data()) % at::elementSize(dtype) != 0 || bytes == 0) read = read.clone();
  } else {
    read = from_lists(tensor, shape, dtype, where);
  }
  if (is_bool_but_not(read)) throw Error(where + " is bool but holds values other than 0 and 1");
  return read;
}

}  // namespace parity::onnx

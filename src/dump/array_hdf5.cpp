// One dataset of any HDF5 file, by hyperslabs.
#include "dump/array_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <mutex>

#include "core/error.hpp"
#include "dump/allocate.hpp"
#include "dump/dump.hpp"
#include "dump/hdf5.hpp"

namespace parity {
namespace {

/// Where a recording keeps what was written under `name` (FORMAT.md, "point"); "" when it has no such point.
std::string recorded_key(const std::filesystem::path& file, const std::string& name) {
  const Dump dump(file);
  for (const nlohmann::json& event : dump.events())
    if (event.value("e", "") == "point" && event.value("path", "") == name &&
        event.value("role", "output") == "output" && event.contains("k") && event["k"].is_string())
      return event["k"];
  return "";
}

/// Of a dataset that others wrote, without the attribute that recordings have.
at::ScalarType plain_dtype(hid_t dataset, const std::string& where) {
  const hdf5::Handle type(H5Dget_type(dataset));
  if (!type) hdf5::fail(where + " has no readable type");
  const H5T_class_t kind = H5Tget_class(type.get());
  const size_t size = H5Tget_size(type.get());
  const bool little = size == 1 || H5Tget_order(type.get()) == H5T_ORDER_LE;
  if (kind == H5T_INTEGER && little && H5Tget_sign(type.get()) == H5T_SGN_NONE && size <= 2)
    return size == 1 ? at::kByte : at::kUInt16;
  size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  if (kind == H5T_FLOAT && little &&
      H5Tget_fields(type.get(), &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) >= 0) {
    if (size == 2 && mantissa_size == 10) return at::kHalf;
    if (size == 2 && mantissa_size == 7) return at::kBFloat16;
    if (size == 4 && mantissa_size == 23) return at::kFloat;
    if (size == 8 && mantissa_size == 52) return at::kDouble;
  }
  throw Error(where + " holds neither uint8, uint16 nor floats in little endian; convert it");
}

hdf5::Layout plain_layout(hid_t dataset, const std::string& where, uint64_t file_size) {
  hdf5::Layout layout;
  layout.dtype = plain_dtype(dataset, where);
  const hdf5::Handle space(H5Dget_space(dataset));
  const int axes = space ? H5Sget_simple_extent_ndims(space.get()) : -1;
  if (axes < 0 || axes > 8) throw Error(where + " has no shape of up to 8 axes");
  std::vector<hsize_t> shape(static_cast<size_t>(axes));
  if (axes > 0) H5Sget_simple_extent_dims(space.get(), shape.data(), nullptr);
  uint64_t bytes = at::elementSize(layout.dtype);
  for (const hsize_t n : shape) {
    if (n > INT64_MAX || __builtin_mul_overflow(bytes, static_cast<uint64_t>(n), &bytes))
      throw Error(where + " declares an impossible shape");
    layout.shape.push_back(static_cast<int64_t>(n));
  }
  if (bytes > 0) hdf5::check_storage(dataset, bytes, where, file_size);
  return layout;
}

class Hdf5Array final : public ArrayFile {
 public:
  Hdf5Array(const std::filesystem::path& path, const std::string& name) : file_(path) {
    std::string group = "/", key = name;
    if (!file_.has("/", name) && file_.root_string("format")) {
      group = "/values";
      key = recorded_key(path, name);
    }
    where_ = fmt::format("{}: dataset '{}'", path.string(), name);
    if (key.empty() || !file_.has(group, key))
      throw Error(fmt::format("{} is missing (the root holds {}); name another with --dataset", where_,
                              fmt::join(file_.names("/"), ", ")));
    dataset_ = file_.dataset(group, key);
    const bool recorded = hdf5::string_attribute(dataset_.get(), "dtype", where_).has_value();
    layout_ = recorded ? hdf5::tensor_layout(dataset_.get(), where_, file_.size())
                       : plain_layout(dataset_.get(), where_, file_.size());
  }

  at::ScalarType dtype() const override { return layout_.dtype; }
  const std::vector<int64_t>& shape() const override { return layout_.shape; }

  at::Tensor slice(size_t axis, int64_t index) const override {
    std::vector<hsize_t> start(layout_.shape.size(), 0), count(layout_.shape.begin(), layout_.shape.end());
    std::vector<int64_t> rest = layout_.shape;
    start[axis] = static_cast<hsize_t>(index);
    count[axis] = 1;
    rest.erase(rest.begin() + static_cast<int64_t>(axis));
    at::Tensor out = empty_for(rest, layout_.dtype, where_);
    if (out.numel() == 0) return out;
    static std::mutex one_at_a_time;  // HDF5 is not thread-safe, and two clips are read at once
    const std::lock_guard lock(one_at_a_time);
    const hdf5::Handle in_file(H5Dget_space(dataset_.get())), type(H5Dget_type(dataset_.get()));
    const hdf5::Handle in_memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
    if (H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr) < 0 ||
        H5Dread(dataset_.get(), type.get(), in_memory.get(), in_file.get(), H5P_DEFAULT, out.mutable_data_ptr()) < 0)
      hdf5::fail(fmt::format("{} cannot be read at index {} of axis {}", where_, index, axis));
    return out;
  }

 private:
  std::string where_;
  hdf5::File file_;
  hdf5::Handle dataset_;
  hdf5::Layout layout_;
};

}  // namespace

std::unique_ptr<ArrayFile> open_hdf5_array(const std::filesystem::path& file, const std::string& name) {
  return std::make_unique<Hdf5Array>(file, name);
}

}  // namespace parity

// Tensors of every dtype of FORMAT.md, read raw: the type in the file is also the type in memory, so that HDF5 never
// converts (its float32 -> bfloat16 rounds ties away from even; its bfloat16 -> float32 costs 15 times a raw read).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/allocate.hpp"
#include "dump/hdf5.hpp"
#include "dump/placement.hpp"

namespace parity::hdf5 {
namespace {

struct FloatFields {
  size_t size, exponent_position, exponent_size, mantissa_size, bias;
};

// IEEE 754 binary64, binary32, binary16; bfloat16 is the upper half of a binary32.
std::optional<FloatFields> float_fields(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return FloatFields{8, 52, 11, 52, 1023};
    case at::kFloat:
      return FloatFields{4, 23, 8, 23, 127};
    case at::kHalf:
      return FloatFields{2, 10, 5, 10, 15};
    case at::kBFloat16:
      return FloatFields{2, 7, 8, 7, 127};
    default:
      return std::nullopt;
  }
}

bool is_float(hid_t type, const FloatFields& expected) {
  if (H5Tget_class(type) != H5T_FLOAT || H5Tget_size(type) != expected.size || H5Tget_order(type) != H5T_ORDER_LE)
    return false;
  size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) < 0) return false;
  return sign == expected.size * 8 - 1 && exponent == expected.exponent_position && mantissa == 0 &&
         exponent_size == expected.exponent_size && mantissa_size == expected.mantissa_size &&
         H5Tget_ebias(type) == expected.bias && H5Tget_norm(type) == H5T_NORM_IMPLIED;
}

bool is_integer(hid_t type, size_t size) {
  return H5Tget_class(type) == H5T_INTEGER && H5Tget_size(type) == size &&
         (size == 1 || H5Tget_order(type) == H5T_ORDER_LE);
}

// h5py's complex: a compound of two equal floats, real part first, nothing between.
bool is_complex(hid_t type, const FloatFields& part) {
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2 || H5Tget_size(type) != 2 * part.size)
    return false;
  for (unsigned i = 0; i < 2; ++i) {
    const Handle member(H5Tget_member_type(type, i));
    if (!member || H5Tget_member_offset(type, i) != i * part.size || !is_float(member.get(), part)) return false;
  }
  return true;
}

bool is_bool(hid_t type) {
  const H5T_class_t kind = H5Tget_class(type);
  return (kind == H5T_ENUM || kind == H5T_INTEGER) && H5Tget_size(type) == 1;
}

// Does the type in the file hold exactly the bits of `dtype`? bfloat16 may come as 16-bit integers of its bits.
bool holds(hid_t type, at::ScalarType dtype) {
  if (dtype == at::kBool) return is_bool(type);
  if (dtype == at::kBFloat16 && is_integer(type, 2)) return true;
  if (const auto fields = float_fields(dtype)) return is_float(type, *fields);
  if (at::isComplexType(dtype)) {
    const auto part = float_fields(at::toRealValueType(dtype));
    return part && is_complex(type, *part);
  }
  if (!is_integer(type, at::elementSize(dtype))) return false;
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  return at::isFloat8Type(dtype) ? !is_signed : is_signed == at::isSignedType(dtype);
}

std::string type_in_words(hid_t type) {
  const size_t bits = 8 * H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return fmt::format("{}-bit integers", bits);
    case H5T_FLOAT:
      return fmt::format("{}-bit floats", bits);
    case H5T_STRING:
      return "strings";
    case H5T_OPAQUE:
      return fmt::format("opaque data of {} bytes an element", bits / 8);
    case H5T_COMPOUND:
      return "compounds";
    case H5T_ENUM:
      return "enumerated values";
    default:
      return "data of another class";
  }
}

at::ScalarType dtype_of(hid_t dataset, hid_t type, const std::string& where) {
  const auto name = string_attribute(dataset, "dtype", where);
  if (H5Tget_class(type) == H5T_OPAQUE && H5Tget_size(type) == 2)
    throw Error(where +
                " holds opaque 2-byte data: h5py stores ml_dtypes.bfloat16 so, and nobody can tell what it was; "
                "write it with parity_probe.Writer, or as uint16 with the attribute dtype=bfloat16");
  if (!name) throw Error(where + " has no attribute 'dtype'; write it with parity_probe.Writer");
  at::ScalarType dtype{};
  try {
    dtype = parse_dtype(*name);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", where, error.what()));
  }
  if (!holds(type, dtype)) throw Error(fmt::format("{} says dtype={} but holds {}", where, *name, type_in_words(type)));
  return dtype;
}

std::vector<int64_t> shape_of(hid_t dataset, const std::string& where) {
  const Handle space(H5Dget_space(dataset));
  const H5S_class_t kind = space ? H5Sget_simple_extent_type(space.get()) : H5S_NO_CLASS;
  if (kind == H5S_SCALAR) return {};
  if (kind != H5S_SIMPLE) throw Error(where + " has no shape");
  const int rank = H5Sget_simple_extent_ndims(space.get());
  std::vector<hsize_t> sizes(std::max(rank, 0));
  if (rank < 0 || H5Sget_simple_extent_dims(space.get(), sizes.data(), nullptr) < 0)
    fail(where + " has no readable shape");
  return {sizes.begin(), sizes.end()};
}

// Elements of a shape whose bytes fit in int64; a negative size is one above 2^63.
int64_t checked_count(const std::vector<int64_t>& shape, size_t item, const std::string& where) {
  int64_t count = 1, bytes = 0;
  bool fits = true;
  for (const int64_t size : shape)
    fits = fits && size >= 0 && !__builtin_mul_overflow(count, std::max<int64_t>(size, 1), &count);
  if (!fits || __builtin_mul_overflow(count, static_cast<int64_t>(item), &bytes))
    throw Error(fmt::format("{} declares an impossible shape [{}]", where, fmt::join(shape, ", ")));
  return std::find(shape.begin(), shape.end(), 0) == shape.end() ? count : 0;
}

// Recorded strides must be a permutation of row-major, without gaps and overlaps: they decide how much memory is
// touched.
void check_strides(const Layout& layout, const std::string& where) {
  const auto& shape = layout.shape;
  const auto& strides = layout.strides;
  bool dense = strides.size() == shape.size() &&
               std::none_of(strides.begin(), strides.end(), [](int64_t stride) { return stride < 0; });
  std::vector<size_t> order(dense ? shape.size() : 0);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const size_t axis : order) {
    if (shape[axis] == 1) continue;
    dense = dense && strides[axis] == expected;
    expected *= shape[axis];
  }
  if (!dense && layout.count > 0)
    throw Error(fmt::format("{} has strides [{}] that do not lay out shape [{}] densely", where,
                            fmt::join(strides, ", "), fmt::join(shape, ", ")));
}

int64_t recorded_misalignment(hid_t dataset, at::ScalarType dtype, const std::string& where) {
  const auto found = integer_attribute(dataset, "misalignment", where);
  if (!found) return 0;
  const auto part =
      static_cast<int64_t>(at::elementSize(at::isComplexType(dtype) ? at::toRealValueType(dtype) : dtype));
  if (found->size() != 1 || found->front() < 0 || found->front() >= kAlignment || found->front() % part != 0)
    throw Error(where + " has an attribute 'misalignment' that is no address modulo 64 of its dtype");
  return found->front();
}

// With gaps, or elements that share memory.
std::optional<std::vector<int64_t>> loose_strides(hid_t dataset, const Layout& layout, const std::string& where) {
  auto strides = integer_attribute(dataset, "loose_strides", where);
  if (strides && layout.count > 0 && (!layout.strides.empty() || !can_be_laid_out(layout.shape, *strides)))
    throw Error(fmt::format("{} has loose_strides [{}] at which no tensor of shape [{}] is kept", where,
                            fmt::join(*strides, ", "), fmt::join(layout.shape, ", ")));
  return strides;
}

// What was read row-major, where it lay. Throws Error when elements that share memory differ.
at::Tensor where_it_lay(const at::Tensor& rows, const Layout& layout, const std::string& where) {
  const uint64_t bytes =
      static_cast<uint64_t>(elements_spanned(layout.shape, layout.strides)) * at::elementSize(layout.dtype);
  const at::Tensor tensor =
      with_memory(bytes, where, [&] { return laid_out(rows, layout.strides, layout.misalignment); });
  if (!lie_apart(layout.shape, layout.strides) &&
      std::memcmp(tensor.contiguous().const_data_ptr(), rows.const_data_ptr(), rows.nbytes()) != 0)
    throw Error(where + " has elements that share memory by its loose_strides, but differ");
  return tensor;
}

}  // namespace

void check_storage(hid_t dataset, uint64_t bytes, const std::string& where, uint64_t file_size) {
  const Handle creation(H5Dget_create_plist(dataset));
  if (!creation) fail(where + " cannot be inspected");
  const H5D_layout_t layout = H5Pget_layout(creation.get());
  if (layout == H5D_VIRTUAL || H5Pget_external_count(creation.get()) > 0)
    throw Error(where + " keeps its data in another file; copy it into this one (h5repack)");
  const bool filtered = H5Pget_nfilters(creation.get()) > 0;
  const uint64_t stored = H5Dget_storage_size(dataset);
  // Deflate gains at most 1032:1 (zlib's documentation); without a filter every byte is there.
  const uint64_t limit = filtered ? stored * 1032 : std::min(stored, file_size);
  if (bytes > limit || stored > file_size)
    throw Error(
        fmt::format("{} declares {} bytes but {} are stored: the file is damaged, or its writer was interrupted", where,
                    bytes, stored));
  if (layout == H5D_CONTIGUOUS && bytes > 0) {
    const haddr_t offset = H5Dget_offset(dataset);
    if (offset == HADDR_UNDEF || offset > file_size || bytes > file_size - offset)
      throw Error(where + " lies outside the file: the file is truncated or damaged");
  }
}

Layout tensor_layout(hid_t dataset, const std::string& where, uint64_t file_size) {
  const Handle type(H5Dget_type(dataset));
  if (!type) fail(where + " has no readable type");
  Layout layout;
  layout.dtype = dtype_of(dataset, type.get(), where);
  layout.shape = shape_of(dataset, where);
  layout.count = checked_count(layout.shape, at::elementSize(layout.dtype), where);
  if (layout.count > 0) check_storage(dataset, layout.count * at::elementSize(layout.dtype), where, file_size);
  if (auto strides = integer_attribute(dataset, "strides", where)) {
    layout.strides = std::move(*strides);
    check_strides(layout, where);
  }
  if (auto loose = loose_strides(dataset, layout, where)) layout.strides = std::move(*loose);
  layout.misalignment = recorded_misalignment(dataset, layout.dtype, where);
  return layout;
}

at::Tensor read_tensor(hid_t dataset, const std::string& where, uint64_t file_size) {
  const Layout layout = tensor_layout(dataset, where, file_size);
  const bool in_place = layout.strides.empty() || layout.count == 0;  // else: read row-major, then lay out
  const auto bytes = static_cast<uint64_t>(layout.count) * at::elementSize(layout.dtype);
  const at::Tensor tensor = with_memory(bytes, where, [&] {
    return empty_at(in_place ? layout.misalignment : 0, layout.shape, row_major_strides(layout.shape), layout.dtype);
  });
  if (layout.count > 0) {
    const Handle type(H5Dget_type(dataset));
    if (H5Dread(dataset, type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, tensor.mutable_data_ptr()) < 0)
      fail(where + " cannot be read");
    // A C++ bool that is neither 0 nor 1 is undefined behaviour in every kernel.
    if (layout.dtype == at::kBool && tensor.view(at::kByte).gt(1).any().item<bool>())
      throw Error(where + " says dtype=bool but holds values other than 0 and 1");
  }
  return in_place ? tensor : where_it_lay(tensor, layout, where);
}

}  // namespace parity::hdf5

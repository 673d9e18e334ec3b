// HDF5 identifiers that close themselves, and the file types of elements.
#pragma once
#include <hdf5.h>

#include <cstdint>
#include <utility>

#include "types.hpp"

namespace parity::probe {

/// Owns one HDF5 identifier of any kind.
class Handle {
 public:
  Handle() = default;
  explicit Handle(hid_t id) : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() { reset(); }
  herr_t reset() { return id_ >= 0 ? (H5Idec_ref(std::exchange(id_, -1)) < 0 ? -1 : 0) : 0; }
  hid_t get() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_ = -1;
};

/// HDF5 prints nothing while this lives.
class Quiet {
 public:
  Quiet() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Quiet() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// The HDF5 type whose bits are those of `dtype` (FORMAT.md, "Tensors"). HDF5 never converts: its float32 -> bfloat16
/// rounds ties wrong.
inline Handle file_type(Dtype dtype) {
  const bool wide = dtype.size == 8 || dtype.size == 16;
  switch (dtype.kind) {
    case Kind::real:
      if (dtype.size >= 4) return Handle(H5Tcopy(wide ? H5T_IEEE_F64LE : H5T_IEEE_F32LE));
      [[fallthrough]];
    case Kind::bfloat: {
      const std::size_t mantissa = dtype.kind == Kind::real ? 10 : 7;
      Handle type(H5Tcopy(H5T_IEEE_F32LE));
      H5Tset_fields(type.get(), 15, mantissa, 15 - mantissa, 0, mantissa);
      H5Tset_size(type.get(), 2);
      H5Tset_ebias(type.get(), dtype.kind == Kind::real ? 15 : 127);
      return type;
    }
    case Kind::boolean: {
      Handle type(H5Tenum_create(H5T_STD_I8LE));
      for (const std::int8_t value : {std::int8_t{0}, std::int8_t{1}})
        H5Tenum_insert(type.get(), value == 0 ? "FALSE" : "TRUE", &value);
      return type;
    }
    case Kind::complex: {
      const hid_t part = dtype.size == 16 ? H5T_IEEE_F64LE : H5T_IEEE_F32LE;
      Handle type(H5Tcreate(H5T_COMPOUND, dtype.size));
      H5Tinsert(type.get(), "r", 0, part);
      H5Tinsert(type.get(), "i", dtype.size / 2, part);
      return type;
    }
    default: {
      Handle type(H5Tcopy(dtype.kind == Kind::integer ? H5T_STD_I64LE : H5T_STD_U64LE));
      H5Tset_size(type.get(), dtype.size);
      return type;
    }
  }
}

}  // namespace parity::probe

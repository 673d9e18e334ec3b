// The types in the file are the types in memory, so that HDF5 never converts (hdf5_tensor.cpp says why).
#include "dump/dump_writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/hdf5.hpp"
#include "dump/link_name.hpp"
#include "dump/placement.hpp"

namespace parity {
namespace {

using hdf5::Handle;

// IEEE_F32LE narrowed to two bytes: sign in bit 15, then exponent, then mantissa.
Handle two_byte_float(size_t exponent_bits, size_t mantissa_bits, size_t bias) {
  Handle type(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(type.get(), 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
  H5Tset_size(type.get(), 2);
  H5Tset_ebias(type.get(), bias);
  return type;
}

Handle complex_of(hid_t part) {
  const size_t size = H5Tget_size(part);
  Handle type(H5Tcreate(H5T_COMPOUND, 2 * size));
  H5Tinsert(type.get(), "r", 0, part);
  H5Tinsert(type.get(), "i", size, part);
  return type;
}

Handle h5py_bool() {
  Handle type(H5Tenum_create(H5T_STD_I8LE));
  const int8_t no = 0, yes = 1;
  H5Tenum_insert(type.get(), "FALSE", &no);
  H5Tenum_insert(type.get(), "TRUE", &yes);
  return type;
}

Handle integer_type(size_t size, bool is_signed) {
  const std::array types{is_signed ? H5T_STD_I8LE : H5T_STD_U8LE, is_signed ? H5T_STD_I16LE : H5T_STD_U16LE,
                         is_signed ? H5T_STD_I32LE : H5T_STD_U32LE, is_signed ? H5T_STD_I64LE : H5T_STD_U64LE};
  return Handle(H5Tcopy(types[size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3]));
}

// FORMAT.md, "Tensors".
Handle file_type(at::ScalarType dtype) {
  if (dtype == at::kDouble) return Handle(H5Tcopy(H5T_IEEE_F64LE));
  if (dtype == at::kFloat) return Handle(H5Tcopy(H5T_IEEE_F32LE));
  if (dtype == at::kHalf) return two_byte_float(5, 10, 15);
  if (dtype == at::kBFloat16) return two_byte_float(8, 7, 127);
  if (dtype == at::kBool) return h5py_bool();
  if (dtype == at::kComplexFloat) return complex_of(H5T_IEEE_F32LE);
  if (dtype == at::kComplexDouble) return complex_of(H5T_IEEE_F64LE);
  if (at::isFloat8Type(dtype)) return Handle(H5Tcopy(H5T_STD_U8LE));
  if (at::isIntegralType(dtype, /*includeBool=*/false))
    return integer_type(at::elementSize(dtype), at::isSignedType(dtype));
  throw Error(fmt::format("dtype {} cannot be written to a recording", dtype_name(dtype)));
}

// `data`: as the type lies in memory; for a variable-length string a pointer to its char*.
void write_attribute(hid_t object, const char* name, hid_t type, hid_t space, const void* data,
                     const std::string& where) {
  if (H5Aexists(object, name) > 0) H5Adelete(object, name);
  const Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
  if (!attribute || H5Awrite(attribute.get(), type, data) < 0)
    hdf5::fail(fmt::format("{}: attribute '{}' cannot be written", where, name));
}

void write_root_text(hid_t file, const char* name, const std::string& text, const std::string& where) {
  const Handle type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
  H5Tset_size(type.get(), H5T_VARIABLE);
  H5Tset_cset(type.get(), H5T_CSET_UTF8);
  const char* data = text.c_str();
  write_attribute(file, name, type.get(), space.get(), &data, where);
}

void write_fixed_text(hid_t object, const char* name, const std::string& text, const std::string& where) {
  const Handle type(H5Tcopy(H5T_C_S1)), space(H5Screate(H5S_SCALAR));
  H5Tset_size(type.get(), std::max<size_t>(1, text.size()));
  H5Tset_strpad(type.get(), H5T_STR_NULLPAD);
  write_attribute(object, name, type.get(), space.get(), text.c_str(), where);
}

void write_integers(hid_t object, const char* name, const std::vector<int64_t>& numbers, const std::string& where) {
  const hsize_t count = numbers.size();
  const Handle space(H5Screate_simple(1, &count, nullptr));
  write_attribute(object, name, H5T_NATIVE_INT64, space.get(), numbers.data(), where);
}

Handle simple_space(at::IntArrayRef shape) {
  if (shape.empty()) return Handle(H5Screate(H5S_SCALAR));
  const std::vector<hsize_t> sizes(shape.begin(), shape.end());
  return Handle(H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr));
}

}  // namespace

struct DumpWriter::Impl {
  std::filesystem::path path, temporary;
  Handle file, values;
  std::set<std::string> keys;
  std::string events;

  std::string name() const { return path.string(); }
  void set_complete(uint8_t complete) const {
    const Handle scalar(H5Screate(H5S_SCALAR));
    write_attribute(file.get(), "complete", H5T_STD_U8LE, scalar.get(), &complete, name());
  }
  Handle group(const std::string& where) const {  // made as needed
    if (H5Lexists(file.get(), where.c_str(), H5P_DEFAULT) > 0)
      return Handle(H5Gopen2(file.get(), where.c_str(), H5P_DEFAULT));
    const Handle create(H5Pcreate(H5P_LINK_CREATE));
    H5Pset_create_intermediate_group(create.get(), 1);
    return Handle(H5Gcreate2(file.get(), where.c_str(), create.get(), H5P_DEFAULT, H5P_DEFAULT));
  }
};

DumpWriter::DumpWriter(const std::filesystem::path& file, const DumpHead& head) : impl_(std::make_unique<Impl>()) {
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  impl_->path = file;
  impl_->temporary = file;
  impl_->temporary.replace_filename(fmt::format(".{}.{}.tmp", file.filename().string(), getpid()));
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_libver_bounds(access.get(), H5F_LIBVER_EARLIEST, H5F_LIBVER_V110);
  impl_->file = Handle(H5Fcreate(impl_->temporary.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()));
  if (!impl_->file) hdf5::fail(fmt::format("{}: cannot create the file", file.string()));
  write_root_text(impl_->file.get(), "format", "parity-dump/1", file.string());
  impl_->set_complete(0);
  write_root_text(impl_->file.get(), "level", head.level, file.string());
  write_root_text(impl_->file.get(), "producer", head.producer, file.string());
  write_root_text(impl_->file.get(), "model", head.model, file.string());
  write_root_text(impl_->file.get(), "provenance", head.provenance.dump(), file.string());
  impl_->values = impl_->group("/values");
  for (const char* group : {"/weights", "/inputs", "/outputs", "/trace"})
    if (!impl_->group(group)) hdf5::fail(fmt::format("{}: group '{}' cannot be made", file.string(), group));
}

DumpWriter::~DumpWriter() {
  if (!impl_->file) return;  // closed
  impl_->values = {};
  impl_->file = {};
  std::error_code ignored;
  std::filesystem::remove(impl_->temporary, ignored);
}

bool DumpWriter::has_value(const std::string& key) const { return impl_->keys.contains(key); }

void DumpWriter::value(const std::string& key, const at::Tensor& tensor) {
  if (!impl_->keys.insert(key).second) return;
  const std::string where = fmt::format("{}: dataset '/values/{}'", impl_->name(), key);
  const at::Tensor plain = tensor.resolve_conj().resolve_neg();
  const at::Tensor rows = plain.contiguous();
  const Handle type = file_type(plain.scalar_type()), space = simple_space(plain.sizes());
  const Handle create(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_fill_time(create.get(), H5D_FILL_TIME_NEVER);
  H5Pset_obj_track_times(create.get(), false);
  const Handle data(
      H5Dcreate2(impl_->values.get(), key.c_str(), type.get(), space.get(), H5P_DEFAULT, create.get(), H5P_DEFAULT));
  if (!data ||
      (rows.numel() > 0 && H5Dwrite(data.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, rows.const_data_ptr()) < 0))
    hdf5::fail(where + " cannot be written");
  write_fixed_text(data.get(), "dtype", dtype_name(plain.scalar_type()), where);
  if (plain.numel() == 0) return;
  if (plain.strides() != row_major_strides(plain.sizes())) {
    const bool dense = plain.is_non_overlapping_and_dense();
    if (dense || can_be_laid_out(plain.sizes(), plain.strides()))
      write_integers(data.get(), dense ? "strides" : "loose_strides", plain.strides().vec(), where);
  }
  if (const int64_t bytes = misalignment(plain); bytes != 0) write_integers(data.get(), "misalignment", {bytes}, where);
}

void DumpWriter::link(std::string_view group, std::string_view name, const std::string& key) {
  const Handle where = impl_->group(fmt::format("/{}", group));
  const std::string step = link_name(name);
  if (where && H5Lexists(where.get(), step.c_str(), H5P_DEFAULT) > 0) return;
  if (!where ||
      H5Lcreate_hard(impl_->values.get(), key.c_str(), where.get(), step.c_str(), H5P_DEFAULT, H5P_DEFAULT) < 0)
    hdf5::fail(fmt::format("{}: '/{}/{}' cannot be linked to '/values/{}'", impl_->name(), group, name, key));
}

void DumpWriter::event(const nlohmann::json& event) { impl_->events += event.dump() + "\n"; }

void DumpWriter::close() {
  const std::string& text = impl_->events;
  const hsize_t size = text.size(), unlimited = H5S_UNLIMITED, chunk = std::clamp<hsize_t>(size, 1, 64 << 10);
  const Handle space(H5Screate_simple(1, &size, &unlimited)), create(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(create.get(), 1, &chunk);
  H5Pset_obj_track_times(create.get(), false);
  Handle data(H5Dcreate2(impl_->file.get(), "/trace/events", H5T_STD_U8LE, space.get(), H5P_DEFAULT, create.get(),
                         H5P_DEFAULT));
  if (!data || (size > 0 && H5Dwrite(data.get(), H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0))
    hdf5::fail(fmt::format("{}: dataset '/trace/events' cannot be written", impl_->name()));
  data = {};
  impl_->set_complete(1);
  if (H5Fflush(impl_->file.get(), H5F_SCOPE_GLOBAL) < 0)
    hdf5::fail(fmt::format("{}: cannot be written to the end (disk full?)", impl_->name()));
  impl_->values = {};
  impl_->file = {};
  std::error_code problem;
  std::filesystem::rename(impl_->temporary, impl_->path, problem);
  if (problem) throw Error(fmt::format("{}: cannot be given its name: {}", impl_->name(), problem.message()));
}

}  // namespace parity

#include "recording_file.hpp"

#include <cstring>

namespace parity::testing {
namespace {

// Names written out again: core/precision.hpp's table is among what the tests judge.
std::string torch_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return "float64";
    case at::kFloat:
      return "float32";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    case at::kFloat8_e4m3fn:
      return "float8_e4m3fn";
    case at::kFloat8_e5m2:
      return "float8_e5m2";
    case at::kComplexFloat:
      return "complex64";
    case at::kComplexDouble:
      return "complex128";
    case at::kLong:
      return "int64";
    case at::kInt:
      return "int32";
    case at::kShort:
      return "int16";
    case at::kChar:
      return "int8";
    case at::kByte:
      return "uint8";
    case at::kBool:
      return "bool";
    default:
      return "other";
  }
}

hid_t half_width(size_t exponent_bits, size_t mantissa_bits, size_t bias) {
  const hid_t type = H5Tcopy(H5T_IEEE_F32LE);
  H5Tset_fields(type, 15, mantissa_bits, exponent_bits, 0, mantissa_bits);
  H5Tset_size(type, 2);
  H5Tset_ebias(type, bias);
  return type;
}

hid_t complex_of(hid_t part) {
  const hid_t type = H5Tcreate(H5T_COMPOUND, 2 * H5Tget_size(part));
  H5Tinsert(type, "r", 0, part);
  H5Tinsert(type, "i", H5Tget_size(part), part);
  return type;
}

hid_t h5py_bool() {
  const hid_t type = H5Tenum_create(H5T_STD_I8LE);
  for (const int8_t value : {0, 1}) H5Tenum_insert(type, value == 0 ? "FALSE" : "TRUE", &value);
  return type;
}

void write_attribute(hid_t object, const std::string& name, hid_t type, hid_t space, const void* data) {
  if (H5Aexists(object, name.c_str()) > 0) H5Adelete(object, name.c_str());
  const hid_t attribute = H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, type, data);
  H5Aclose(attribute);
  H5Sclose(space);
}

void write_text(hid_t object, const std::string& name, const std::string& text) {
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, std::max<size_t>(1, text.size()));
  write_attribute(object, name, type, H5Screate(H5S_SCALAR), text.c_str());
  H5Tclose(type);
}

}  // namespace

hid_t file_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return H5Tcopy(H5T_IEEE_F64LE);
    case at::kFloat:
      return H5Tcopy(H5T_IEEE_F32LE);
    case at::kHalf:
      return half_width(5, 10, 15);
    case at::kBFloat16:
      return half_width(8, 7, 127);
    case at::kComplexFloat:
      return complex_of(H5T_IEEE_F32LE);
    case at::kComplexDouble:
      return complex_of(H5T_IEEE_F64LE);
    case at::kLong:
      return H5Tcopy(H5T_STD_I64LE);
    case at::kInt:
      return H5Tcopy(H5T_STD_I32LE);
    case at::kShort:
      return H5Tcopy(H5T_STD_I16LE);
    case at::kChar:
      return H5Tcopy(H5T_STD_I8LE);
    case at::kBool:
      return h5py_bool();
    default:
      return H5Tcopy(H5T_STD_U8LE);  // uint8 and the 8-bit floats
  }
}

nlohmann::json value_json(int64_t id, const at::Tensor& like, const std::string& key) {
  nlohmann::json value{{"v", id}, {"d", torch_name(like.scalar_type())}, {"s", like.sizes().vec()}};
  if (!key.empty()) value["k"] = key;
  return value;
}

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  if (a.scalar_type() != b.scalar_type() || a.sizes() != b.sizes()) return false;
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return x.numel() == 0 ||
         std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;  // an empty tensor's pointer is null
}

RecordingFile::RecordingFile(const std::filesystem::path& path) {
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_libver_bounds(access, H5F_LIBVER_EARLIEST, H5F_LIBVER_V110);
  file_ = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access);
  H5Pclose(access);
  attribute("format", "parity-dump/1");
  attribute("complete", uint8_t{0});
  attribute("level", "op");
  attribute("producer", "tests 1");
  attribute("model", "Test");
  attribute("provenance", "{}");
  for (const char* group : {"values", "weights", "inputs", "outputs", "trace"})
    H5Gclose(H5Gcreate2(file_, group, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

void RecordingFile::attribute(const std::string& name, const std::string& text) { write_text(file_, name, text); }

void RecordingFile::attribute(const std::string& name, uint8_t number) {
  write_attribute(file_, name, H5T_STD_U8LE, H5Screate(H5S_SCALAR), &number);
}

void RecordingFile::value(const std::string& key, const at::Tensor& tensor) {
  const hid_t type = file_type(tensor.scalar_type());
  const at::Tensor rows = tensor.contiguous();
  raw(key, type, {rows.sizes().begin(), rows.sizes().end()}, rows.const_data_ptr(), torch_name(tensor.scalar_type()));
  H5Tclose(type);
  if (!tensor.is_contiguous() && tensor.is_non_overlapping_and_dense())
    integers(key, "strides", tensor.strides().vec());
}

void RecordingFile::raw(const std::string& key, hid_t type, const std::vector<hsize_t>& shape, const void* bytes,
                        const std::string& dtype) {
  const hid_t space =
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t data = H5Dcreate2(file_, ("values/" + key).c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  if (bytes != nullptr && H5Sget_simple_extent_npoints(space) > 0)
    H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes);
  if (!dtype.empty()) write_text(data, "dtype", dtype);
  H5Dclose(data);
  H5Sclose(space);
}

void RecordingFile::integers(const std::string& key, const std::string& name, const std::vector<int64_t>& numbers) {
  const hid_t data = H5Dopen2(file_, ("values/" + key).c_str(), H5P_DEFAULT);
  const hsize_t count = numbers.size();
  write_attribute(data, name, H5T_STD_I64LE, H5Screate_simple(1, &count, nullptr), numbers.data());
  H5Dclose(data);
}

void RecordingFile::link(const std::string& name, const std::string& key) {
  const hid_t create = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(create, 1);
  H5Lcreate_hard(file_, ("values/" + key).c_str(), file_, name.c_str(), create, H5P_DEFAULT);
  H5Pclose(create);
}

void RecordingFile::close(bool complete) {
  if (file_ < 0) return;
  const hsize_t size = events_.size(), unlimited = H5S_UNLIMITED, chunk = 4096;
  const hid_t space = H5Screate_simple(1, &size, &unlimited), create = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(create, 1, &chunk);
  const hid_t data = H5Dcreate2(file_, "trace/events", H5T_STD_U8LE, space, H5P_DEFAULT, create, H5P_DEFAULT);
  if (size > 0) H5Dwrite(data, H5T_STD_U8LE, H5S_ALL, H5S_ALL, H5P_DEFAULT, events_.data());
  H5Dclose(data);
  H5Pclose(create);
  H5Sclose(space);
  attribute("complete", static_cast<uint8_t>(complete));
  H5Fclose(file_);
  file_ = -1;
}

}  // namespace parity::testing

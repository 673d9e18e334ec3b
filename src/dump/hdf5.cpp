#include "dump/hdf5.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "dump/allocate.hpp"
#include "dump/link_name.hpp"
#include "dump/trial.hpp"

namespace parity::hdf5 {
namespace {

// HDF5 would print its error stack to stderr and load filter plug-ins that a file names: neither is wanted from foreign
// files.
void quiet_library() {
  H5open();
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

herr_t keep_first(unsigned index, const H5E_error2_t* error, void* out) {
  if (index == 0 && error->desc != nullptr) *static_cast<std::string*>(out) = error->desc;
  return 0;
}

bool is_hard_link(hid_t group, const std::string& name) {
  if (name.empty() || name == "." || H5Lexists(group, name.c_str(), H5P_DEFAULT) <= 0) return false;
  H5L_info_t info{};
  return H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT) >= 0 && info.type == H5L_TYPE_HARD;
}

herr_t add_name(hid_t, const char* name, const H5L_info_t*, void* out) {
  static_cast<std::vector<std::string>*>(out)->emplace_back(name);
  return 0;
}

}  // namespace

std::string innermost_error() {
  std::string message;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, keep_first, &message);  // upward: begins at the innermost
  H5Eclear2(H5E_DEFAULT);
  std::replace(message.begin(), message.end(), '\n', ' ');
  return message;
}

void fail(const std::string& what) {
  const std::string inner = innermost_error();
  throw Error(inner.empty() ? what : fmt::format("{} (HDF5: {})", what, inner));
}

File::File(const std::filesystem::path& file, bool trusted) : path_(file) {
  quiet_library();
  const std::string name = file.string();
  std::error_code problem;
  if (!std::filesystem::exists(file, problem)) throw Error(fmt::format("{}: no such file", name));
  if (!std::filesystem::is_regular_file(file, problem)) throw Error(fmt::format("{}: is not a regular file", name));
  size_ = std::filesystem::file_size(file, problem);
  if (problem) throw Error(fmt::format("{}: cannot be read ({})", name, problem.message()));
  if (size_ == 0) throw Error(fmt::format("{}: is empty", name));
  if (H5Fis_hdf5(name.c_str()) == 0)
    throw Error(fmt::format("{}: is not an HDF5 file; a recording is made with parity_probe.record", name));
  if (!trusted) survive_trial(file);
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  H5Pset_file_locking(access.get(), true, true);  // read-only file systems cannot lock
  file_ = Handle(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.get()));
  if (!file_) fail(fmt::format("{}: cannot be opened, truncated or damaged; record or copy it again", name));
}

std::optional<std::string> File::root_string(const char* name) const {
  return string_attribute(file_.get(), name, path_.string());
}

std::optional<int64_t> File::root_integer(const char* name) const {
  const auto values = integer_attribute(file_.get(), name, path_.string());
  if (!values) return std::nullopt;
  if (values->size() != 1) throw Error(fmt::format("{}: attribute '{}' is not a single number", path_.string(), name));
  return values->front();
}

const Handle& File::open_group(std::string_view group) const {
  if (const auto found = groups_.find(group); found != groups_.end()) return found->second;
  static const Handle missing;
  Handle handle = opened(group);
  return handle ? groups_.emplace(group, std::move(handle)).first->second : missing;
}

Handle File::opened(std::string_view group) const {
  Handle current(H5Gopen2(file_.get(), "/", H5P_DEFAULT));
  if (!current) fail(fmt::format("{}: the root group cannot be opened", path_.string()));
  for (size_t begin = 1; begin < group.size();) {
    const size_t end = std::min(group.find('/', begin), group.size());
    const std::string name(group.substr(begin, end - begin));
    if (!is_hard_link(current.get(), name)) return {};
    current = Handle(H5Gopen2(current.get(), name.c_str(), H5P_DEFAULT));
    if (!current) fail(fmt::format("{}: '{}' is not a readable group", path_.string(), group.substr(0, end)));
    begin = end + 1;
  }
  return current;
}

bool File::has(std::string_view group, std::string_view name) const {
  if (name.find('/') != std::string_view::npos) return false;
  const Handle& parent = open_group(group);
  return parent && is_hard_link(parent.get(), std::string(name));
}

std::vector<std::string> File::names(std::string_view group) const {
  std::vector<std::string> found;
  const Handle& parent = open_group(group);
  if (!parent) return found;
  if (H5Literate(parent.get(), H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, add_name, &found) < 0)
    fail(fmt::format("{}: group '{}' cannot be listed", path_.string(), group));
  if (!std::all_of(found.begin(), found.end(), is_text))
    throw Error(
        fmt::format("{}: group '{}' holds names that are not text: the file is damaged; record or copy it again",
                    path_.string(), group));
  std::sort(found.begin(), found.end());
  return found;
}

Handle File::open_dataset(std::string_view group, std::string_view name) const {
  const std::string where = fmt::format("{}: dataset '{}/{}'", path_.string(), group, name);
  if (!has(group, name)) throw Error(fmt::format("{} is missing; see what there is: parity-check inspect", where));
  const Handle& parent = open_group(group);
  Handle object(H5Oopen(parent.get(), std::string(name).c_str(), H5P_DEFAULT));
  if (!object) fail(where + " cannot be opened");
  if (H5Iget_type(object.get()) != H5I_DATASET) throw Error(where + " is not a dataset but another kind of object");
  return object;
}

at::Tensor File::tensor(std::string_view group, std::string_view name) const {
  const Handle dataset = open_dataset(group, name);
  return read_tensor(dataset.get(), fmt::format("{}: dataset '{}/{}'", path_.string(), group, name), size_);
}

std::pair<at::ScalarType, std::vector<int64_t>> File::tensor_type(std::string_view group, std::string_view name) const {
  const Handle dataset = open_dataset(group, name);
  Layout layout = tensor_layout(dataset.get(), fmt::format("{}: dataset '{}/{}'", path_.string(), group, name), size_);
  return {layout.dtype, std::move(layout.shape)};
}

std::string File::bytes(std::string_view group, std::string_view name) const {
  const std::string where = fmt::format("{}: dataset '{}/{}'", path_.string(), group, name);
  const Handle dataset = open_dataset(group, name);
  const Handle type(H5Dget_type(dataset.get())), space(H5Dget_space(dataset.get()));
  hsize_t size = 0;
  if (!type || H5Tget_class(type.get()) != H5T_INTEGER || H5Tget_size(type.get()) != 1 || !space ||
      H5Sget_simple_extent_ndims(space.get()) != 1 || H5Sget_simple_extent_dims(space.get(), &size, nullptr) < 0)
    throw Error(where + " is not a one-dimensional uint8 dataset");
  if (size == 0) return {};
  check_storage(dataset.get(), size, where, size_);
  std::string text = text_for(size, where);
  if (H5Dread(dataset.get(), H5T_NATIVE_UCHAR, H5S_ALL, H5S_ALL, H5P_DEFAULT, text.data()) < 0)
    fail(where + " cannot be read");
  return text;
}

}  // namespace parity::hdf5

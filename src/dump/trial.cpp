#include "dump/trial.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <set>

#include "core/error.hpp"
#include "dump/hdf5.hpp"

namespace parity::hdf5 {
namespace {

constexpr int kMostLevels = 64;       // of groups; a recording has 3
constexpr int kTooDeep = 3;           // exit status of the child
constexpr rlim_t kMostSeconds = 120;  // of processor time: a slow disk or a busy machine is no damage

herr_t read_attribute(hid_t object, const char* name, const H5A_info_t*, void*) {
  const Handle attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Handle type(attribute ? H5Aget_type(attribute.get()) : -1);
  const H5T_class_t kind = type ? H5Tget_class(type.get()) : H5T_NO_CLASS;
  try {
    if (kind == H5T_STRING) string_attribute(object, name, "");
    if (kind == H5T_INTEGER) integer_attribute(object, name, "");
  } catch (const Error&) {  // said again, with names, to whoever asks for it
  }
  return 0;
}

void read_index(hid_t dataset) {
  const Handle type(H5Dget_type(dataset)), space(H5Dget_space(dataset)), creation(H5Dget_create_plist(dataset));
  if (!type || !space || !creation || H5Pget_layout(creation.get()) != H5D_CHUNKED) return;
  hsize_t chunks = 0;
  H5Dget_storage_size(dataset);
  H5Dget_num_chunks(dataset, space.get(), &chunks);
}

// Group by group and not by H5Ovisit, which hands out paths from the root: each step of each would be looked up again,
// and 1500 groups one in another took 20 s.
struct Walk {
  std::set<haddr_t> seen;  // hard links may lead in a circle
  int depth = 0;
  bool too_deep = false;
};

void read_object(hid_t object, Walk& walk);

herr_t read_link(hid_t group, const char* name, const H5L_info_t* link, void* walk) {
  if (link->type != H5L_TYPE_HARD) return 0;
  const Handle object(H5Oopen(group, name, H5P_DEFAULT));
  if (object) read_object(object.get(), *static_cast<Walk*>(walk));
  return 0;
}

void read_object(hid_t object, Walk& walk) {
  H5O_info_t info{};
  hsize_t position = 0;
  if (H5Oget_info2(object, &info, H5O_INFO_BASIC) < 0 || !walk.seen.insert(info.addr).second) return;
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_NATIVE, &position, read_attribute, nullptr);
  if (info.type == H5O_TYPE_DATASET) read_index(object);
  if (info.type != H5O_TYPE_GROUP) return;
  walk.too_deep = walk.too_deep || walk.depth == kMostLevels;
  if (walk.too_deep) return;
  ++walk.depth;
  H5Literate(object, H5_INDEX_NAME, H5_ITER_NATIVE, nullptr, read_link, &walk);
  --walk.depth;
}

[[noreturn]] void read_and_exit(const char* file) {
  const rlimit no_core{0, 0}, finite{kMostSeconds, kMostSeconds + 1};
  setrlimit(RLIMIT_CORE, &no_core);
  setrlimit(RLIMIT_CPU, &finite);
  if (const int nowhere = open("/dev/null", O_WRONLY); nowhere >= 0) dup2(nowhere, STDERR_FILENO);
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU}) std::signal(signal, SIG_DFL);
  const hid_t opened = H5Fopen(file, H5F_ACC_RDONLY, H5P_DEFAULT);
  Walk walk;
  if (opened >= 0) {
    if (const Handle root(H5Gopen2(opened, "/", H5P_DEFAULT)); root) read_object(root.get(), walk);
    if (H5Lexists(opened, "trace", H5P_DEFAULT) > 0 && H5Lexists(opened, "trace/events", H5P_DEFAULT) > 0) {
      try {
        File(file, /*trusted=*/true).bytes("/trace", "events");
      } catch (const Error&) {
      }
    }
    H5Fclose(opened);  // memory that was overwritten shows when it is freed
  }
  _exit(walk.too_deep ? kTooDeep : 0);  // no destructors: they belong to the parent
}

}  // namespace

void survive_trial(const std::filesystem::path& file) {
  const pid_t child = fork();
  if (child < 0) throw Error(fmt::format("{}: cannot start a process to look at it", file.string()));
  if (child == 0) read_and_exit(file.c_str());
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == kTooDeep)
    throw Error(fmt::format("{}: holds groups more than {} levels deep, which no recording has; is it the right file?",
                            file.string(), kMostLevels));
  if (!WIFSIGNALED(status)) return;
  if (WTERMSIG(status) == SIGXCPU)
    throw Error(fmt::format("{}: is damaged: reading its structure does not end", file.string()));
  throw Error(fmt::format("{}: is damaged: the HDF5 library crashes on it (signal {}); record or copy it again",
                          file.string(), WTERMSIG(status)));
}

}  // namespace parity::hdf5

#include "core/memory.hpp"

#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

namespace parity {
namespace {

constexpr uint64_t kUnknown = UINT64_MAX;

std::optional<uint64_t> number_in(const std::string& file) {
  std::ifstream stream(file);
  uint64_t value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;  // "max": no limit
}

// The number behind `key` in a file of lines "key: 123 kB" or "key 123".
std::optional<uint64_t> number_after(const std::string& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string word; stream >> word;)
    if (uint64_t value = 0; word == key && stream >> value) return value;
  return std::nullopt;
}

// "/user.slice/session" of control groups version 2; "" in the root or under version 1.
std::string control_group() {
  std::ifstream stream("/proc/self/cgroup");
  for (std::string line; std::getline(stream, line);)
    if (line.starts_with("0::/")) return line.size() == 4 ? "" : line.substr(3);
  return "";
}

uint64_t left_of(std::optional<uint64_t> limit, std::optional<uint64_t> used, uint64_t returnable) {
  if (!limit || !used) return kUnknown;
  const uint64_t held = *used - std::min(returnable, *used);
  return *limit - std::min(held, *limit);
}

// Cached files count as used there but are given back when memory is asked for.
uint64_t left_in_group() {
  const std::string second = "/sys/fs/cgroup" + control_group(), first = "/sys/fs/cgroup/memory";
  return std::min(left_of(number_in(second + "/memory.max"), number_in(second + "/memory.current"),
                          number_after(second + "/memory.stat", "inactive_file").value_or(0)),
                  left_of(number_in(first + "/memory.limit_in_bytes"), number_in(first + "/memory.usage_in_bytes"),
                          number_after(first + "/memory.stat", "total_inactive_file").value_or(0)));
}

uint64_t left_of_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kUnknown;
  const auto pages = number_in("/proc/self/statm");
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return left_of(limit.rlim_cur, pages ? std::optional(*pages * page) : std::nullopt, 0);
}

}  // namespace

uint64_t free_memory() {
  const auto available = number_after("/proc/meminfo", "MemAvailable:");  // kB
  return std::min({available ? *available * 1024 : kUnknown, left_in_group(), left_of_address_space()});
}

#ifdef __GLIBC__
KeepFreedMemory::KeepFreedMemory() {
  mallopt(M_MMAP_MAX, 0);  // large blocks too come from the heap, whose end is not given back
  mallopt(M_TRIM_THRESHOLD, -1);
}
KeepFreedMemory::~KeepFreedMemory() {
  mallopt(M_MMAP_MAX, 65536);  // mallopt(3): the defaults
  mallopt(M_TRIM_THRESHOLD, 128 * 1024);
  malloc_trim(0);
}
void give_back_large_blocks() {
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  mallopt(M_TRIM_THRESHOLD, 16 << 20);
}
#else
KeepFreedMemory::KeepFreedMemory() {}
KeepFreedMemory::~KeepFreedMemory() {}
void give_back_large_blocks() {}
#endif

}  // namespace parity

// How much memory there still is, for whoever is about to take much of it.
#pragma once
#include <cstdint>

namespace parity {

/// Bytes that this process can still take without swapping or being killed: what the system calls available, within
/// the limits of its control group and its own (ulimit -v). UINT64_MAX when nobody says.
uint64_t free_memory();

/// While one lives, memory that this process frees stays with it: pages that the system hands out anew have to be
/// cleared first, which is a tenth of a forward at 6000 tokens. (glibc; elsewhere it does nothing.)
class KeepFreedMemory {
 public:
  KeepFreedMemory();
  ~KeepFreedMemory();
  KeepFreedMemory(const KeepFreedMemory&) = delete;
  KeepFreedMemory& operator=(const KeepFreedMemory&) = delete;
};

}  // namespace parity

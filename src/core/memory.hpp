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

/// From here on blocks of 4 MiB and more are pages of their own, which go back to the system when they are freed. glibc
/// raises that size to 32 MiB by itself with what a program frees, and keeps smaller blocks between those in use: 1.1
/// of the 2.8 GB that comparing a block of Wan 1.3B at 1530 tokens held. Of smaller ones 16 MiB stay at the heap's end:
/// with glibc's 128 KiB, 26 of the 59 thousand page faults that comparing two layers of GPT-2 takes. (glibc; elsewhere
/// it does nothing.)
void give_back_large_blocks();

}  // namespace parity

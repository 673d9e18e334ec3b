#include "models/own_pages.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/error.hpp"

namespace parity {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;  // of x86-64, and of arm64 with pages of 4 kB

// Begins where a huge page can. Where none is free the pages are ordinary ones.
void* huge_pages(size_t bytes) {
  const size_t reserved = bytes + kHugePage;
  void* memory = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return memory;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(memory) % kHugePage) % kHugePage;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE)), used = (bytes + page - 1) / page * page;
  char* first = static_cast<char*>(memory) + before;
  if (before > 0) munmap(memory, before);
  munmap(first + used, reserved - before - used);
  madvise(first, bytes, MADV_HUGEPAGE);
  return first;
}

}  // namespace

void give_back_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

at::Tensor empty_in_own_pages(at::IntArrayRef sizes, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * at::elementSize(dtype);
  if (bytes == 0) return at::empty(sizes, dtype);
  give_back_free_memory();
  void* memory = huge_pages(bytes);
  if (memory == MAP_FAILED) throw Error(fmt::format("[weights] no memory for {} bytes", bytes));
  return at::from_blob(
      memory, sizes, [bytes](void* mapped) { munmap(mapped, bytes); }, at::TensorOptions(dtype));
}

at::Tensor in_own_pages(const at::Tensor& weight) {
  return empty_in_own_pages(weight.sizes(), weight.scalar_type()).copy_(weight);
}

}  // namespace parity

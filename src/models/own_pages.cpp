#include "models/own_pages.hpp"

#include <fmt/format.h>
#include <malloc.h>
#include <sys/mman.h>

#include "core/error.hpp"

namespace parity {

void give_back_free_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

at::Tensor empty_in_own_pages(at::IntArrayRef sizes, at::ScalarType dtype) {
  const size_t bytes = static_cast<size_t>(c10::multiply_integers(sizes)) * at::elementSize(dtype);
  if (bytes == 0) return at::empty(sizes, dtype);
  give_back_free_memory();
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw Error(fmt::format("[weights] no memory for {} bytes", bytes));
  return at::from_blob(
      memory, sizes, [bytes](void* mapped) { munmap(mapped, bytes); }, at::TensorOptions(dtype));
}

at::Tensor in_own_pages(const at::Tensor& weight) {
  return empty_in_own_pages(weight.sizes(), weight.scalar_type()).copy_(weight);
}

}  // namespace parity

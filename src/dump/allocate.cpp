#include "dump/allocate.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/memory.hpp"

namespace parity {
namespace {

constexpr uint64_t kUnasked = 16 << 20;  // bytes: below, asking for the free memory (30 us) costs more than it is worth

[[noreturn]] void too_large(uint64_t bytes, const std::string& where) {
  throw Error(
      fmt::format("{}: takes {} bytes in memory, {} are free: too large for this machine, or damaged, if it should "
                  "be smaller",
                  where, bytes, free_memory()));
}

void require_free(uint64_t bytes, const std::string& where) {
  if (bytes > kUnasked && bytes > free_memory()) too_large(bytes, where);
}

}  // namespace

at::Tensor with_memory(uint64_t bytes, const std::string& where, const std::function<at::Tensor()>& make) {
  require_free(bytes, where);
  try {
    return make();
  } catch (const c10::Error&) {  // LibTorch's allocator does not throw std::bad_alloc
    too_large(bytes, where);
  } catch (const std::bad_alloc&) {
    too_large(bytes, where);
  }
}

at::Tensor empty_for(at::IntArrayRef shape, at::ScalarType dtype, const std::string& where) {
  const auto bytes = static_cast<uint64_t>(c10::multiply_integers(shape)) * at::elementSize(dtype);
  return with_memory(bytes, where, [&] { return at::empty(shape, dtype); });
}

std::string text_for(uint64_t bytes, const std::string& where) {
  require_free(bytes, where);
  try {
    return std::string(bytes, '\0');
  } catch (const std::exception&) {  // std::bad_alloc, std::length_error
    too_large(bytes, where);
  }
}

}  // namespace parity

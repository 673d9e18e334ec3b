#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/dtype_kind.hpp"
#include "core/error.hpp"
#include "core/precision.hpp"
#include "onnx/program.hpp"

namespace parity::onnx {
namespace {

bool fits(at::IntArrayRef declared, at::IntArrayRef given) {
  if (declared.size() != given.size()) return false;
  for (size_t i = 0; i < declared.size(); ++i)
    if (declared[i] >= 0 && declared[i] != given[i]) return false;
  return true;
}

}  // namespace

at::Tensor fitted(const std::filesystem::path& file, const GraphInput& input, const at::Tensor& given) {
  if (is_float(input.dtype) != is_float(given.scalar_type()))
    throw Error(fmt::format("{}: its input '{}' is {}, {} is given", file.string(), input.name, dtype_name(input.dtype),
                            dtype_name(given.scalar_type())));
  if (input.shape && !fits(*input.shape, given.sizes()))
    throw Error(fmt::format("{}: its input '{}' is of shape [{}] (-1: any), [{}] is given", file.string(), input.name,
                            fmt::join(*input.shape, ", "), fmt::join(given.sizes(), ", ")));
  return given.to(input.dtype).clone();
}

}  // namespace parity::onnx

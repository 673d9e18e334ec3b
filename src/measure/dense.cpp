// Tensors of any dtype and layout as dense arrays of numbers.
#include <fmt/format.h>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "measure/blocks.hpp"
#include "measure/element_type.hpp"

namespace parity {

at::Tensor dense_reals(const at::Tensor& tensor, const char* side) {
  if (!tensor.defined()) throw Error(fmt::format("{} tensor is undefined: nothing to compare", side));
  if (tensor.layout() != at::kStrided)
    throw Error(
        fmt::format("{} tensor has layout {}: make it dense before comparing", side, c10::str(tensor.layout())));
  dtype_name(tensor.scalar_type());  // throws on a dtype unknown to the project
  at::Tensor t = tensor.detach().cpu().resolve_conj().resolve_neg();
  if (t.scalar_type() == at::kComplexHalf) t = t.to(at::kComplexFloat);
  if (t.is_complex()) t = at::view_as_real(t);
  return t.contiguous();
}

template <class T>
void load(const at::Tensor& dense, int64_t begin, int64_t n, T* out) {
  with_type(dense.scalar_type(), [&]<class S>(const S*) {
    const S* in = static_cast<const S*>(dense.const_data_ptr()) + begin;
    for (int64_t i = 0; i < n; ++i) out[i] = as<T>(in[i]);
  });
}

template void load(const at::Tensor&, int64_t, int64_t, double*);
template void load(const at::Tensor&, int64_t, int64_t, long double*);

std::vector<int64_t> index_of(int64_t place, at::IntArrayRef shape) {
  std::vector<int64_t> index(shape.size());
  for (size_t i = shape.size(); i-- > 0; place /= shape[i]) index[i] = place % shape[i];
  return index;
}

}  // namespace parity

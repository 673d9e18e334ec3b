// Operators that pick elements by indices.
#include "core/error.hpp"
#include "onnx/operator.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {
namespace {

at::Tensor as_long(const at::Tensor& indices) { return indices.to(at::kLong); }

// Checked here: a kernel may read beyond its tensor's memory.
void require_within(const at::Tensor& indices, int64_t size) {
  if (indices.numel() == 0) return;
  bool fits = false;
  unseen([&] { fits = indices.ge(0).logical_and(indices.lt(size)).all().item<bool>(); });
  if (!fits) throw Error("its indices lie beyond its input");
}

at::Tensor checked(const at::Tensor& indices, int64_t size) {
  const at::Tensor wrapped = from_front(as_long(indices), size);
  require_within(wrapped, size);
  return wrapped;
}

// Rows of a table are an embedding, one index a cut, as PyTorch has them.
Tensors gather(const Call& call) {
  const at::Tensor& data = call[0];
  const int64_t axis = axis_in(call.integer("axis", 0), data.dim());
  if (const auto number = call.literal(1)) return {at::select(data, axis, number->toLong())};
  const at::Tensor indices = checked(call[1], data.size(axis));
  if (data.dim() == 2 && axis == 0 && at::isFloatingType(data.scalar_type())) return {at::embedding(data, indices)};
  const at::Tensor picked = at::index_select(data, axis, at::reshape(indices, {-1}));
  if (indices.dim() == 1) return {picked};
  std::vector<int64_t> shape = data.sizes().vec();
  shape.erase(shape.begin() + axis);
  shape.insert(shape.begin() + axis, indices.sizes().begin(), indices.sizes().end());
  return {at::reshape(picked, shape)};
}

Tensors gather_elements(const Call& call) {
  const int64_t axis = axis_in(call.integer("axis", 0), call[0].dim());
  return {at::gather(call[0], axis, checked(call[1], call[0].size(axis)))};
}

// The last axis of the indices names places along the first axes of the data (after the batch axes).
Tensors gather_nd(const Call& call) {
  const int64_t batch = call.integer("batch_dims", 0);
  const at::Tensor& data = call[0];
  const at::Tensor indices = as_long(call[1]);
  const int64_t rank = indices.dim();
  if (batch < 0 || rank <= batch || data.dim() <= batch) throw Error("its batch axes are not there");
  const int64_t named = indices.size(-1);
  if (named < 1 || batch + named > data.dim()) throw Error("its indices name more axes than its input has");
  c10::List<std::optional<at::Tensor>> places;
  for (int64_t b = 0; b < batch; ++b) {
    std::vector<int64_t> shape(static_cast<size_t>(rank) - 1, 1);
    shape[static_cast<size_t>(b)] = data.size(b);
    places.push_back(at::reshape(at::arange(data.size(b)), shape));
  }
  for (int64_t i = 0; i < named; ++i) places.push_back(checked(at::select(indices, -1, i), data.size(batch + i)));
  return {at::index(data, places)};
}

Tensors non_zero(const Call& call) { return {at::nonzero(call[0]).t()}; }

// Without an axis of the flattened input.
Tensors compress(const Call& call) {
  const at::Tensor input = call.has("axis") ? call[0] : at::reshape(call[0], {-1});
  const int64_t axis = axis_in(call.integer("axis", 0), input.dim());
  const at::Tensor places = at::reshape(at::nonzero(call[1]), {-1});
  require_within(places, input.size(axis));
  return {at::index_select(input, axis, places)};
}

constexpr LoweringRow kGatheringRows[] = {
    {"Gather", gather},     {"GatherElements", gather_elements}, {"GatherND", gather_nd}, {"NonZero", non_zero},
    {"Compress", compress},
};

}  // namespace

std::span<const LoweringRow> gathering() { return kGatheringRows; }

}  // namespace parity::onnx

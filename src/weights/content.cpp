#include "weights/content.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/dtype_kind.hpp"
#include "core/precision.hpp"

namespace parity {
namespace {

constexpr size_t kMostAxes = 5;  // permuted; a convolution's weight has five
constexpr int64_t kContentSamples = 48;
constexpr double kCoarsest = 0x1p-3, kOfScale = 0x1p-9;  // fp8 (e5m2) rounds by an eighth; small numbers underflow
constexpr double kGolden = 0.6180339887498949;

std::vector<int64_t> long_axes(at::IntArrayRef shape) {
  std::vector<int64_t> axes;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

std::vector<int64_t> lengths(at::IntArrayRef shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> out;
  for (const int64_t axis : axes) out.push_back(shape[axis]);
  return out;
}

// Axes of length 1 in front, then the long ones as given: where they stand makes no difference to a flat reading.
std::vector<int64_t> with_ones(at::IntArrayRef shape, const std::vector<int64_t>& axes) {
  std::vector<int64_t> all;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] == 1) all.push_back(static_cast<int64_t>(i));
  all.insert(all.end(), axes.begin(), axes.end());
  return all;
}

int64_t product(at::IntArrayRef shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

bool close(const std::vector<double>& reference, const std::vector<double>& candidate) {
  double scale = 0;
  for (const double x : reference)
    if (std::isfinite(x)) scale = std::max(scale, std::abs(x));
  for (size_t i = 0; i < reference.size(); ++i) {
    const double r = reference[i], c = candidate[i];
    if (std::isnan(r) != std::isnan(c) || std::isinf(r) != std::isinf(c)) return false;
    if (std::isfinite(r) && !(std::abs(r - c) <= kCoarsest * std::abs(r) + kOfScale * scale)) return false;
  }
  return true;
}

// Widest first: the coarsest rounding that explains is not wanted, the finest is.
constexpr std::array kNarrow{at::kFloat, at::kHalf, at::kBFloat16, at::kFloat8_e4m3fn, at::kFloat8_e5m2};

bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

bool same_values(const at::Tensor& a, const at::Tensor& b) {  // of one dtype; NaN equals NaN, +0 equals -0
  if (same_bits(a, b)) return true;
  if (a.element_size() == 1 && at::isFloatingType(a.scalar_type()))
    return at::equal(a.to(at::kFloat), b.to(at::kFloat));
  return at::equal(a, b);
}

// fp32 with its lower 16 bits cut off, as fp32.
at::Tensor truncated_to_bf16(const at::Tensor& t) {
  return t.to(at::kFloat).contiguous().view(at::kInt).bitwise_and(static_cast<int32_t>(0xffff0000)).view(at::kFloat);
}

}  // namespace

std::vector<Order> orders_between(at::IntArrayRef candidate, at::IntArrayRef reference) {
  std::vector<Order> orders;
  if (product(candidate) != product(reference)) return orders;
  std::vector<int64_t> mine = long_axes(reference), theirs = long_axes(candidate);
  const std::vector<int64_t> wanted = lengths(reference, mine);
  std::vector<int64_t> a = wanted, b = lengths(candidate, theirs);
  if (a == b) orders.push_back({});
  std::sort(a.begin(), a.end()), std::sort(b.begin(), b.end());
  if (theirs.size() > kMostAxes || mine.size() > kMostAxes) return orders.empty() ? std::vector<Order>{{}} : orders;
  if (a == b) {
    for (std::vector<int64_t> axes = theirs; std::next_permutation(axes.begin(), axes.end());)
      if (lengths(candidate, axes) == wanted) orders.push_back({with_ones(candidate, axes), {}});
    if (lengths(candidate, theirs) != wanted) orders.push_back({});  // reshaped where a permutation belongs
    return orders;
  }
  orders.push_back({});
  for (std::vector<int64_t> axes = theirs; std::next_permutation(axes.begin(), axes.end());)
    orders.push_back({with_ones(candidate, axes), {}});
  for (std::vector<int64_t> axes = mine; std::next_permutation(axes.begin(), axes.end());)
    orders.push_back({{}, with_ones(reference, axes)});
  return orders;
}

Layout layout_of(const Order& order, const std::optional<Slice>& slice, at::IntArrayRef candidate,
                 at::IntArrayRef reference) {
  Reading theirs, mine;
  if (slice) theirs.slice = *slice;
  theirs.permutation = order.candidate;
  mine.permutation = order.reference;
  Layout layout = layout_between(theirs, candidate, mine, reference);
  if (order.as_is() && sliced(candidate.vec(), slice) == reference.vec()) layout.reshape.clear();
  return layout;
}

at::Tensor sliced(const at::Tensor& tensor, const std::optional<Slice>& slice) {
  return slice ? tensor.narrow((*slice)[0], (*slice)[1], (*slice)[2]) : tensor;
}

std::vector<int64_t> sliced(std::vector<int64_t> shape, const std::optional<Slice>& slice) {
  if (slice) shape[(*slice)[0]] = (*slice)[2];
  return shape;
}

std::vector<int64_t> sample_places(int64_t count, int64_t most) {
  std::vector<int64_t> places;
  for (int64_t k = 0; k < std::min(count, most); ++k) {
    double whole = 0;
    const double at = std::modf((static_cast<double>(k) + 0.5) * kGolden, &whole) * static_cast<double>(count);
    places.push_back(count <= most ? k : static_cast<int64_t>(at));
  }
  return places;
}

std::vector<double> sample(const at::Tensor& tensor, const std::vector<int64_t>& permutation,
                           const std::vector<int64_t>& places) {
  const at::Tensor t = permutation.empty() ? tensor : tensor.permute(permutation);
  std::vector<int64_t> offsets;
  int64_t span = 1;
  for (int64_t axis = 0; axis < t.dim(); ++axis) span += (t.size(axis) - 1) * t.stride(axis);
  for (int64_t at : places) {
    int64_t offset = 0;
    for (int64_t axis = t.dim(); axis-- > 0;) offset += at % t.size(axis) * t.stride(axis), at /= t.size(axis);
    offsets.push_back(offset);
  }
  at::Tensor memory = t.as_strided({span}, {1});
  if (memory.element_size() == 1 && at::isFloatingType(memory.scalar_type()))
    memory = memory.view(at::kByte).index_select(0, at::tensor(offsets, at::kLong)).view(memory.scalar_type());
  else
    memory = memory.index_select(0, at::tensor(offsets, at::kLong));
  if (memory.is_complex()) memory = at::real(memory).to(at::kDouble) + kGolden * at::imag(memory).to(at::kDouble);
  const at::Tensor values = memory.to(at::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

at::Tensor in_reference_order(const at::Tensor& candidate, const Order& order, at::IntArrayRef reference) {
  if (order.reference.empty())
    return (order.candidate.empty() ? candidate : candidate.permute(order.candidate)).reshape(reference);
  std::vector<int64_t> shape, inverse(order.reference.size());
  for (size_t i = 0; i < order.reference.size(); ++i) {
    shape.push_back(reference[order.reference[i]]);
    inverse[order.reference[i]] = static_cast<int64_t>(i);
  }
  return candidate.reshape(shape).permute(inverse);
}

Rounding rounding_between(const at::Tensor& reference, const at::Tensor& candidate) {
  const at::ScalarType mine = reference.scalar_type(), theirs = candidate.scalar_type();
  if (dtype_class(mine) != dtype_class(theirs)) return {};
  if (same_values(mine == theirs ? reference : reference.to(theirs), candidate)) return {true, "", false};
  if (reference.is_complex())
    return rounding_between(at::view_as_real(reference), at::view_as_real(candidate.contiguous()));
  if (dtype_class(mine) != 2) return {};
  for (const at::ScalarType narrow : kNarrow) {
    const bool narrower = unit_roundoff(narrow) > unit_roundoff(theirs) || at::elementSize(theirs) > 2;
    if (narrow == theirs || narrow == mine || !narrower) continue;
    if (same_values(reference.to(narrow).to(theirs), candidate)) return {false, short_dtype_name(narrow), false};
  }
  if (at::elementSize(mine) < 4 || (theirs != at::kFloat && theirs != at::kBFloat16)) return {};
  if (!same_values(truncated_to_bf16(reference).to(theirs), candidate)) return {};
  return {false, "bf16", true};
}

std::optional<Content> find_content(const at::Tensor& reference, const at::Tensor& candidate, const Order* preferred) {
  if (reference.numel() != candidate.numel() || reference.numel() == 0 ||
      dtype_class(reference.scalar_type()) != dtype_class(candidate.scalar_type()))
    return std::nullopt;
  std::vector<Order> orders = orders_between(candidate.sizes(), reference.sizes());
  if (preferred) orders.insert(orders.begin(), *preferred);
  const auto places = sample_places(reference.numel(), kContentSamples);
  std::vector<double> mine, theirs;
  for (const Order& order : orders) {
    if (mine.empty() || !order.reference.empty()) mine = sample(reference, order.reference, places);
    theirs = sample(candidate, order.candidate, places);
    if (!close(mine, theirs)) continue;
    const Rounding rounding = rounding_between(reference, in_reference_order(candidate, order, reference.sizes()));
    if (rounding.found()) return Content{order, rounding};
  }
  return std::nullopt;
}

}  // namespace parity

// Operators that put elements at places.
#include <array>
#include <string_view>

#include "core/error.hpp"
#include "onnx/operator.hpp"
#include "trace/capture.hpp"

namespace parity::onnx {
namespace {

struct Reduction {
  std::string_view onnx, aten;
};
constexpr std::array kReductions{Reduction{"add", "sum"}, Reduction{"mul", "prod"}, Reduction{"max", "amax"},
                                 Reduction{"min", "amin"}};

std::string aten_reduction(const std::string& name) {
  for (const Reduction& r : kReductions)
    if (r.onnx == name) return std::string(r.aten);
  throw Error("its reduction '" + name + "' is not known here");
}

void require_places(const at::Tensor& indices, int64_t size) {
  if (indices.numel() == 0) return;
  bool fits = false;
  unseen([&] { fits = indices.ge(0).logical_and(indices.lt(size)).all().item<bool>(); });
  if (!fits) throw Error("its indices lie beyond its input");
}

Tensors scatter_elements(const Call& call) {
  const int64_t axis = axis_in(call.integer("axis", 0), call[0].dim());
  const at::Tensor indices = from_front(call[1].to(at::kLong), call[0].size(axis));
  require_places(indices, call[0].size(axis));
  const std::string reduction = call.text("reduction", "none");
  if (reduction == "none") return {at::scatter(call[0], axis, indices, call[2])};
  return {at::scatter_reduce(call[0], axis, indices, call[2], aten_reduction(reduction), /*include_self=*/true)};
}

// The last axis of the indices names places along the first axes of the data.
Tensors scatter_nd(const Call& call) {
  const std::string reduction = call.text("reduction", "none");
  const at::Tensor indices = call[1].to(at::kLong);
  const int64_t named = indices.dim() == 0 ? 0 : indices.size(-1);
  if (named < 1 || named > call[0].dim()) throw Error("its indices name more axes than its input has");
  if (reduction != "none" && reduction != "add") throw Error("its reduction '" + reduction + "' is not known here");
  c10::List<std::optional<at::Tensor>> places;
  for (int64_t i = 0; i < named; ++i) {
    const at::Tensor along = from_front(at::select(indices, -1, i), call[0].size(i));
    require_places(along, call[0].size(i));
    places.push_back(along);
  }
  return {at::index_put(call[0], places, call[2], /*accumulate=*/reduction == "add")};
}

// (…, depth, …): values[1] at the index, values[0] elsewhere, nothing at an index that is beyond.
Tensors one_hot(const Call& call) {
  const int64_t depth = call.value(1).to<int64_t>(), rank = call[0].dim() + 1;
  const int64_t axis = axis_in(call.integer("axis", -1), rank);
  if (depth < 0) throw Error("its depth is negative");
  const at::Tensor indices = from_front(call[0].to(at::kLong), depth);
  std::vector<int64_t> shape(static_cast<size_t>(rank), 1);
  shape[static_cast<size_t>(axis)] = depth;
  const at::Tensor here = at::eq(at::unsqueeze(indices, axis), at::reshape(at::arange(depth), shape));
  return {at::where(here, at::select(call[2], 0, 1), at::select(call[2], 0, 0))};
}

constexpr LoweringRow kScatteringRows[] = {
    {"ScatterElements", scatter_elements},
    {"ScatterND", scatter_nd},
    {"OneHot", one_hot},
};

}  // namespace

std::span<const LoweringRow> scattering() { return kScatteringRows; }

}  // namespace parity::onnx

#include "calls/ragged_steps.hpp"

#include <optional>

#include "calls/limits.hpp"
#include "measure/measure.hpp"
#include "pair/limits.hpp"

namespace parity {
namespace {

class Steps {
 public:
  Steps(const RecordedSide& reference, const std::vector<CandidateTensor>& tensors)
      : reference_(reference), tensors_(tensors) {}

  int agreeing(const RaggedBatch& batch, const std::vector<CallShapes>& paths) const {
    int count = 0;
    double looked_at = 0;
    for (const CallShapes& path : paths) {
      if (path.own || path.of_range || batch.batch(path).times == 0) continue;
      const size_t last = batch.batch(path).times - 1;
      const std::vector<size_t> calls = batch.calls_of(path, last);
      const at::Tensor whole = calls.empty() ? at::Tensor() : value(path, last, batch.of_port);
      if (!whole.defined() || ++looked_at > kCallLimits.paths) continue;
      bool all = true;
      for (size_t i = 0; i < calls.size() && all; ++i) {
        const at::Tensor part = value(path, calls[i], !batch.of_port);
        all = part.defined() && agrees(batch, i, whole, part);
      }
      count += all;
    }
    return count;
  }

 private:
  // Undefined: none is stored, or none that tells.
  at::Tensor value(const CallShapes& path, size_t call, bool of_port) const {
    if (of_port) {
      const auto c = path.tensors.find(call);
      return c != path.tensors.end() && may_tell(tensors_[c->second].dtype, tensors_[c->second].shape)
                 ? tensors_[c->second].load()
                 : at::Tensor();
    }
    const auto b = reference_.program->find(path.name, static_cast<int>(call));
    if (!b) return {};
    const Value& value = reference_.program->boundaries[*b].value;
    return value.key.empty() || !may_tell(value.dtype, value.shape) ? at::Tensor()
                                                                    : stored_value(*reference_.dump, value);
  }

  static bool may_tell(at::ScalarType dtype, const Shape& shape) {
    return at::isFloatingType(dtype) && static_cast<double>(c10::multiply_integers(shape)) <= kCallLimits.telling;
  }

  const RecordedSide reference_;
  const std::vector<CandidateTensor>& tensors_;
};

}  // namespace

bool agrees(const RaggedBatch& batch, size_t call, const at::Tensor& whole, const at::Tensor& part) {
  const auto place = place_in_batch(batch, call, whole.sizes().vec(), part.sizes().vec());
  return place && measure_sums(axis_parts(whole, *place).reshape(part.sizes()), part).rel_l2.value_or(1) <
                      kPairLimits.content.same;
}

RaggedBatch in_likelier_order(const std::vector<RaggedBatch>& orders, const RecordedSide& reference,
                              const std::vector<CandidateTensor>& tensors, const std::vector<CallShapes>& paths) {
  if (orders.size() < 2) return orders.front();
  const Steps steps(reference, tensors);
  return steps.agreeing(orders[1], paths) > steps.agreeing(orders[0], paths) ? orders[1] : orders[0];
}

}  // namespace parity

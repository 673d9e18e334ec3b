#include "trace/leaves.hpp"

#include "trace/device.hpp"

namespace parity {

Leaves::Leaves(const Dump& dump, const Program& program, const Flow& flow) : dump_(dump), flow_(flow) {
  for (const Leaf& leaf : program.leaves) leaves_[leaf.value.id] = &leaf;
}

const Leaf* Leaves::find(int64_t id) const {
  const auto found = leaves_.find(id);
  return found == leaves_.end() ? nullptr : found->second;
}

bool Leaves::shared(int64_t id) const {
  const Leaf* leaf = find(id);
  return leaf != nullptr && leaf->base < 0 && !flow_.written_from(id, 0);
}

at::Tensor Leaves::stored(const Value& value, at::ScalarType dtype) {
  const std::pair key{value.id, dtype};
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second;
  at::Tensor tensor = on_replay_device(stored_value(dump_, value), dtype);
  if (shared(value.id)) kept_[key] = tensor;
  return tensor;
}

void Leaves::sweep() {
  std::erase_if(kept_, [](const auto& entry) {
    return entry.second.use_count() == 1 && entry.second.storage().use_count() == 1;
  });
}

}  // namespace parity

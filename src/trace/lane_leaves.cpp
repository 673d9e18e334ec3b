// What no op made: leaves as this replay has them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "trace/lane.hpp"
#include "trace/tables.hpp"

namespace parity {

at::Tensor Lane::stored(const Value& value) const { return leaves_.stored(value, redirected(value)); }

// Leaves are read when first needed.
at::Tensor Lane::get(int64_t id) {
  if (const auto found = values_.find(id); found != values_.end()) return found->second;
  if (const auto given = options_.given.find(id); given != options_.given.end())
    return values_[id] = adopt(given->second, id);
  const Leaf* leaf = leaves_.find(id);
  if (leaf == nullptr) throw Error(fmt::format("value {} is not available", id));
  return values_[id] = leaf_value(*leaf);
}

at::Tensor Lane::leaf(int64_t id) {
  if (const auto found = values_.find(id); found != values_.end()) return found->second;
  const Leaf* leaf = leaves_.find(id);
  if (leaf == nullptr) throw Error(fmt::format("value {} is not a leaf", id));
  return leaf_value(*leaf);
}

at::Tensor Lane::raised(int64_t id) {
  if (const auto found = raised_.find(id); found != raised_.end()) return found->second;
  const Leaf* leaf = leaves_.find(id);
  if (leaf != nullptr && rereadable(id) && !leaf->value.key.empty() && !has_own(*leaf))
    return leaves_.stored(leaf->value, redirect(leaf->value.dtype, Precision::fp64));
  const at::Tensor value = get(id);
  return raised_[id] = value.to(redirect(value.scalar_type(), Precision::fp64));
}

// A leaf in another value's memory is a view of it whenever that changes or is computed; else its stored copy does.
at::Tensor Lane::leaf_value(const Leaf& leaf) {
  const bool own = leaf.base < 0 || (leaves_.find(leaf.base) != nullptr && !flow_.written_from(leaf.base, 0));
  if (!own || leaf.value.key.empty()) {
    if (leaf.base < 0)
      throw Error(fmt::format("value {} has no data in the recording (a tensor without storage?)", leaf.value.id));
    return alias_in(get(leaf.base), leaf);
  }
  return has_own(leaf) ? own_table(leaf) : stored(leaf.value);
}

// An implementation in another arithmetic has computed its tables itself, too.
bool Lane::has_own(const Leaf& leaf) const {
  return leaf.computed && options_.precision == Precision::recorded && options_.arithmetic != Arithmetic::kernel &&
         options_.arithmetic != Arithmetic::exact;
}

at::Tensor Lane::own_table(const Leaf& leaf) {
  const auto draw = static_cast<uint64_t>(leaf.value.id) << 8 | static_cast<uint64_t>(options_.arithmetic);
  if (!leaves_.shared(leaf.value.id)) return computed_anew(stored(leaf.value), draw);
  at::Tensor& table = tables_[leaf.value.id];
  if (!table.defined()) table = computed_anew(stored(leaf.value), draw);
  return table;
}

at::Tensor Lane::alias_in(const at::Tensor& base, const Leaf& leaf) const {
  const auto there = static_cast<int64_t>(base.storage().nbytes() / base.element_size());
  int64_t last = leaf.offset;
  bool fits = leaf.strides.size() == leaf.value.shape.size();
  for (size_t axis = 0; fits && axis < leaf.strides.size(); ++axis) {
    int64_t reach = 0;
    fits = !__builtin_mul_overflow(std::max<int64_t>(leaf.value.shape[axis] - 1, 0), leaf.strides[axis], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  const bool empty = std::find(leaf.value.shape.begin(), leaf.value.shape.end(), 0) != leaf.value.shape.end();
  if (!fits || (last >= there && !empty))
    throw Error(
        fmt::format("{}: value {} (shape [{}], strides [{}], offset {}) reaches beyond the {} elements of value "
                    "{}, whose alias it is; record it again",
                    dump_.file().string(), leaf.value.id, fmt::join(leaf.value.shape, ", "),
                    fmt::join(leaf.strides, ", "), leaf.offset, there, leaf.base));
  return base.as_strided(leaf.value.shape, leaf.strides, leaf.offset);
}

}  // namespace parity

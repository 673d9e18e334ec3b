#include "pipeline/inputs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "dump/tensor_set.hpp"

namespace parity {
namespace {

// Undefined when the file has none of this name.
at::Tensor taken(const TensorSet& set, const char* name, int64_t dimensions, bool floats) {
  if (!set.has(name)) return {};
  const auto value = set.value(name).contiguous();
  if (value.dim() != dimensions || value.size(0) != 1 || value.is_floating_point() != floats || value.numel() == 0)
    throw Error(
        fmt::format("{}: '{}' is {} [{}]; {} numbers with {} dimensions, the first of them 1 (one video), are "
                    "needed",
                    set.file().string(), name, value.dtype().name(), fmt::join(value.sizes(), ", "),
                    floats ? "floating-point" : "whole", dimensions));
  return floats ? value : value.to(at::kLong);
}

void check_same(const TensorSet& set, const at::Tensor& ids, const at::Tensor& mask, const char* name) {
  if (mask.defined() && (!ids.defined() || ids.sizes() != mask.sizes()))
    throw Error(fmt::format("{}: '{}' does not fit its token ids", set.file().string(), name));
}

}  // namespace

GenerationInputs read_generation_inputs(const std::filesystem::path& file) {
  const auto set = TensorSet::open(file);
  GenerationInputs in;
  in.ids = taken(*set, "input_ids", 2, false);
  if (!in.ids.defined()) throw Error(fmt::format("{}: has no 'input_ids'", file.string()));
  in.mask = taken(*set, "attention_mask", 2, false);
  in.negative_ids = taken(*set, "negative_input_ids", 2, false);
  in.negative_mask = taken(*set, "negative_attention_mask", 2, false);
  in.image = taken(*set, "image", 4, true);
  in.pixels = taken(*set, "pixel_values", 4, true);
  in.noise = taken(*set, "noise", 5, true);
  check_same(*set, in.ids, in.mask, "attention_mask");
  check_same(*set, in.negative_ids, in.negative_mask, "negative_attention_mask");
  return in;
}

}  // namespace parity

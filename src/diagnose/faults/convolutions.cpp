// How a convolution lies on its input: kernels turned around, padding on the other side, padding with other values.
#include <ATen/ATen.h>

#include <algorithm>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

// Cross-correlation for convolution: what a kernel in another library's order of taps gives.
void flipped(const ProgramIndex& program, int index, Hypotheses& to) {
  add_fault(to, program, index, "kernel flipped", "taps in reverse order", [](OpCall& call) {
    const at::Tensor weight = call.tensor("weight");
    std::vector<int64_t> axes;
    for (int64_t axis = 2; axis < weight.dim(); ++axis) axes.push_back(axis);
    call.set("weight", weight.flip(axes));
    return call.run_again();
  });
}

struct PaddingWidths {
  std::vector<int64_t> before, after;  // by axis of the kernel
};

// Runs again on an input padded so, outermost axis first.
Results run_padded(OpCall& call, const PaddingWidths& sides, const char* mode) {
  std::vector<int64_t> widths;  // ATen takes them from the last axis on
  for (size_t axis = sides.before.size(); axis-- > 0;) {
    widths.push_back(sides.before[axis]);
    widths.push_back(sides.after[axis]);
  }
  call.set("input", at::pad(call.tensor("input"), widths, mode));
  call.set("padding", std::vector<int64_t>(sides.before.size()));
  return call.run_again();
}

PaddingWidths as_recorded(const OpCall& call) {
  const std::vector<int64_t> padding = call.value("padding").toIntVector();
  return {padding, padding};
}

// With a stride two elements of padding may be one on either side (PyTorch), or both behind (SAME of XLA, TensorFlow).
PaddingWidths behind(const OpCall& call) {
  PaddingWidths sides = as_recorded(call);
  const std::vector<int64_t> stride = call.value("stride").toIntVector(),
                             dilation = call.value("dilation").toIntVector();
  const at::Tensor input = call.tensor("input"), weight = call.tensor("weight");
  for (size_t axis = 0; axis < sides.before.size(); ++axis) {
    const auto at = static_cast<int64_t>(axis) + 2;
    const int64_t extent = input.size(at), reach = dilation[axis] * (weight.size(at) - 1) + 1,
                  steps = (extent + stride[axis] - 1) / stride[axis],
                  all = std::max<int64_t>((steps - 1) * stride[axis] + reach - extent, 0);
    sides.before[axis] = all / 2, sides.after[axis] = all - all / 2;
  }
  return sides;
}

void padded_otherwise(const ProgramIndex& program, int index, bool strided, Hypotheses& to) {
  if (strided)
    add_fault(to, program, index, "convolution padding", "as SAME pads: behind where a stride makes it uneven",
              [](OpCall& call) { return run_padded(call, behind(call), "constant"); });
  for (const char* mode : {"reflect", "replicate"})
    add_fault(to, program, index, "convolution padding",
              std::string(mode[2] == 'f' ? "reflected" : "repeated") + " for zeros",
              [mode](OpCall& call) { return run_padded(call, as_recorded(call), mode); });
}

}  // namespace

void convolution_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const Op& op = program.op(index);
  if (op.kind != "convolution" || op.args.size() < 7) return;
  const Value* weight = program.value(program.argument(index, 1));
  if (weight == nullptr || weight->shape.size() < 3) return;
  const bool has_taps = std::any_of(weight->shape.begin() + 2, weight->shape.end(), [](int64_t n) { return n > 1; });
  if (!has_taps) return;
  flipped(program, index, to);
  if (op.args.at(6).get<bool>()) return;  // of a transposed one padding takes away
  const auto has = [&](size_t argument, int64_t least) {
    return std::ranges::any_of(op.args.at(argument), [&](const auto& n) { return n.template get<int64_t>() >= least; });
  };
  if (has(4, 1)) padded_otherwise(program, index, has(3, 2), to);
}

}  // namespace parity

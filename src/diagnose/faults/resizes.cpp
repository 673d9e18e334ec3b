// Images resized otherwise: corners, centres of pixels, another kernel.
#include <ATen/ATen.h>

#include "diagnose/faults/catalogue.hpp"

namespace parity {
namespace {

// (to, from): how much of each pixel goes into each new one, whose corner, not whose centre, is taken.
at::Tensor by_corners(int64_t from, int64_t to, const at::TensorOptions& options) {
  const double step = static_cast<double>(from) / static_cast<double>(to);
  const at::Tensor place = (at::arange(to, options) * step).clamp_max(static_cast<double>(from - 1)).unsqueeze(1);
  return (1 - (place - at::arange(from, options)).abs()).clamp_min(0);
}

at::Tensor asymmetric(const at::Tensor& x, at::IntArrayRef size, bool /*corners*/) {
  return by_corners(x.size(-2), size[0], x.options())
      .matmul(x)
      .matmul(by_corners(x.size(-1), size[1], x.options()).t());
}
at::Tensor linear(const at::Tensor& x, at::IntArrayRef size, bool corners) {
  return at::upsample_bilinear2d(x, size, corners);
}
at::Tensor cubic(const at::Tensor& x, at::IntArrayRef size, bool corners) {
  return at::upsample_bicubic2d(x, size, corners);
}
at::Tensor nearest(const at::Tensor& x, at::IntArrayRef size, bool /*corners*/) {
  return at::upsample_nearest2d(x, size);
}

struct Resize {
  const char* kind;
  at::Tensor (*of)(const at::Tensor& x, at::IntArrayRef size, bool corners);
  const char* words;
};
constexpr Resize kResizes[]{{"upsample_bilinear2d", linear, "bilinear"},
                            {"upsample_bicubic2d", cubic, "bicubic"},
                            {"upsample_nearest2d", nearest, "nearest"}};

void add_resize(const ProgramIndex& program, int index, const std::string& what, const Resize& as, bool corners_too,
                Hypotheses& to) {
  add_fault(to, program, index, "interpolation", what, [of = as.of, corners_too](OpCall& call) {
    const at::Tensor x = call.arguments.at(0).toTensor();
    const std::vector<int64_t>& shape = call.op.outputs.at(0)->shape;
    const bool aligned = call.op.kind != "upsample_nearest2d" && call.value("align_corners").toBool();
    return Results{of(x, {shape.at(2), shape.at(3)}, aligned != corners_too)};
  });
  to.back().joint = true;  // all maps of a pyramid
}

}  // namespace

void resize_faults(const ProgramIndex& program, int index, Hypotheses& to) {
  const std::string& kind = program.op(index).kind;
  for (const Resize& own : kResizes) {
    if (kind != own.kind) continue;
    for (const Resize& other : kResizes)
      if (&other != &own) add_resize(program, index, std::string(other.words) + " for " + own.words, other, false, to);
    if (kind != "upsample_nearest2d") add_resize(program, index, "corners aligned on one side alone", own, true, to);
    if (kind == "upsample_bilinear2d")
      add_resize(program, index, "corners of pixels for their centres", {"", asymmetric, ""}, false, to);
  }
}

}  // namespace parity

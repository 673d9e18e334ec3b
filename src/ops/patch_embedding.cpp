#include "ops/patch_embedding.hpp"

#include "ops/own.hpp"

namespace parity {
namespace ops {

at::Tensor patch_embedding(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  const auto stride = weight.sizes().slice(2);
  return weight.dim() == 4 ? at::conv2d(x, weight, bias, stride) : at::conv3d(x, weight, bias, stride);
}

at::Tensor own_patch_embedding(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return own_conv(x, weight, bias, weight.sizes().slice(2));
}

at::Tensor tokens_of(const at::Tensor& patches) { return patches.flatten(2).transpose(1, 2).contiguous(); }

}  // namespace ops

namespace {

at::Tensor reference(const OpCase& c) {
  const auto &x = c.in[0], &w = c.in[1];
  const int64_t pt = w.size(2), ph = w.size(3), pw = w.size(4);
  auto out = at::empty({x.size(0), w.size(0), x.size(2) / pt, x.size(3) / ph, x.size(4) / pw}, at::kDouble);
  const auto xs = x.accessor<double, 5>(), ws = w.accessor<double, 5>();
  auto ys = out.accessor<double, 5>();
  for (int64_t i = 0; i < out.numel(); ++i) {
    int64_t rest = i, at[5];
    for (int d = 4; d >= 0; --d) at[d] = rest % out.size(d), rest /= out.size(d);
    double sum = c.in[2].accessor<double, 1>()[at[1]];
    for (int64_t ch = 0; ch < x.size(1); ++ch)
      for (int64_t t = 0; t < pt; ++t)
        for (int64_t h = 0; h < ph; ++h)
          for (int64_t v = 0; v < pw; ++v)
            sum += xs[at[0]][ch][at[2] * pt + t][at[3] * ph + h][at[4] * pw + v] * ws[at[1]][ch][t][h][v];
    ys[at[0]][at[1]][at[2]][at[3]][at[4]] = sum;
  }
  return out;
}

// An image is a video of one frame.
at::Tensor image_reference(const OpCase& c) {
  const auto &x = c.in[0], &w = c.in[1];
  return reference({c.name, {x.unsqueeze(2), w.unsqueeze(2), at::zeros({w.size(0)}, at::kDouble)}}).squeeze(2);
}

at::Tensor run(const OpCase& c) { return ops::patch_embedding(c.in[0], c.in[1], c.in[2]); }

at::Tensor run_own(const OpCase& c) { return ops::own_patch_embedding(c.in[0], c.in[1], c.in[2]); }

at::Tensor run_own_image(const OpCase& c) { return ops::own_patch_embedding(c.in[0], c.in[1], {}); }

at::Tensor run_image(const OpCase& c) { return ops::patch_embedding(c.in[0], c.in[1], {}); }

std::vector<OpCase> cases() {
  return {{"1x2x2", {spread({1, 16, 3, 8, 12}, 1), spread({64, 16, 1, 2, 2}, 2, 0.12), spread({64}, 3, 0.2)}},
          {"image to video, two samples",
           {spread({2, 36, 3, 6, 10}, 4), spread({24, 36, 1, 2, 2}, 5, 0.08), spread({24}, 6, 0.2)}},
          {"patch in time", {spread({1, 4, 4, 4, 6}, 7), spread({8, 4, 2, 2, 2}, 8, 0.2), spread({8}, 9, 0.2)}}};
}

std::vector<OpCase> images() {
  return {{"two images", {spread({2, 3, 28, 42}, 1), spread({40, 3, 14, 14}, 2, 0.04)}},
          {"odd", {spread({2, 3, 15, 15}, 3), spread({42, 3, 5, 5}, 4, 0.1)}}};
}

}  // namespace

const OpRow& patch_embedding_row() {
  // Worst measured: fp64 2 u at 'image to video, two samples', fp32 2.5 u at '1x2x2', bf16 0.44 u at 'image to video,
  // two samples'; fp64 4.2 u there under MKL_CBWR=COMPATIBLE (scripts/op_bounds). Largest ULP distance there, fp32:
  // [3836] got -0x1.b46p-15 want -0x1.b421579f24p-15 ('1x2x2').
  // Own, on an emulated nehalem: fp64 4.3 u, fp32 2 u, bf16 0.44 u (scripts/op_bounds).
  static const OpRow row{"patch_embedding",
                         reference,
                         run,
                         cases,
                         {{at::kDouble, {}, 8.4}, {at::kFloat, {}, 5}, {at::kBFloat16, {}, 0.6}},
                         {{"own", run_own, {{at::kDouble, {}, 8.7}, {at::kFloat, {}, 4.1}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

const OpRow& patch_embedding_image_row() {
  // Worst measured: fp64 0.52 u at 'odd', fp32 6.9 u at 'two images', bf16 0.45 u at 'two images'. In fp64 it follows
  // the order in which MKL adds 588 products: 7.7 u under MKL_CBWR=COMPATIBLE, 7.4 u on an emulated Haswell, 7.0 u as
  // on Intel, all at 'two images'.
  // Largest ULP distance there, fp32: [169] got -0x1.4a3d7cp-7 want -0x1.4a39d60a4b33p-7 ('two images').
  // Own: fp64 7.8 u on an emulated haswell, fp32 4 u on a nehalem, bf16 0.45 u (scripts/op_bounds).
  static const OpRow row{
      "patch_embedding, image",
      image_reference,
      run_image,
      images,
      {{at::kDouble, {}, 16}, {at::kFloat, {}, 14}, {at::kBFloat16, {}, 0.6}},
      {{"own", run_own_image, {{at::kDouble, {}, 16}, {at::kFloat, {}, 8}, {at::kBFloat16, {}, 0.6}}}}};
  return row;
}

}  // namespace parity

// Ops on images that LibTorch has two kernels for, by memory layout. Bilinear resampling in bf16, one: rows, then
// columns, rounded in between; the other (channels last): one sum in fp32, rounded once.
#include <array>

#include "trace/valid.hpp"

namespace parity {
namespace {

std::optional<at::MemoryFormat> channels_last_of(int64_t dim) {
  if (dim == 4) return at::MemoryFormat::ChannelsLast;
  if (dim == 5) return at::MemoryFormat::ChannelsLast3d;
  return std::nullopt;
}

std::optional<Results> resampled(ValidCall call) {
  return call.arithmetic == Arithmetic::transposed ? by_other_layout(std::move(call), "self") : std::nullopt;
}

constexpr std::array kImages{
    ValidForm{"aten::upsample_bilinear2d", resampled},  ValidForm{"aten::_upsample_bilinear2d_aa", resampled},
    ValidForm{"aten::upsample_bicubic2d", resampled},   ValidForm{"aten::_upsample_bicubic2d_aa", resampled},
    ValidForm{"aten::upsample_trilinear3d", resampled}, ValidForm{"aten::avg_pool2d", resampled},
    ValidForm{"aten::avg_pool3d", resampled},           ValidForm{"aten::_adaptive_avg_pool2d", resampled},
};

}  // namespace

std::optional<Results> by_other_layout(ValidCall call, std::string_view name) {
  const at::Tensor image = call.tensor(name);
  if (!image.defined()) return std::nullopt;
  const auto last = channels_last_of(image.dim());
  if (!last) return std::nullopt;
  const bool is_last = image.is_contiguous(*last) && !image.is_contiguous();
  const Results own = call.kernel(call.stack);
  *call.find(name) = image.contiguous(is_last ? at::MemoryFormat::Contiguous : *last);
  Results results = call.kernel(call.stack);
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] && own[i]) results[i] = at::empty_like(*own[i]).copy_(*results[i]);
  return results;
}

std::span<const ValidForm> valid_images() { return kImages; }

}  // namespace parity

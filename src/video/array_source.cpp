// Arrays as clips: .npy, .npz, HDF5; pixels or latents in any order of axes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/precision.hpp"
#include "dump/array_file.hpp"
#include "video/sources.hpp"

namespace parity {
namespace {

constexpr int64_t kLargestFrame = int64_t{1} << 30;  // samples

/// The layout that a shape has when none is stated: (T,H,W,C); (H,W,C) and (T,H,W) are told apart by the last axis.
std::string default_layout(const std::vector<int64_t>& shape, const std::string& where) {
  const int64_t last = shape.empty() ? 0 : shape.back();
  const bool colours = last == 1 || last == 3 || last == 4;
  if (shape.size() == 4 && colours) return "THWC";
  if (shape.size() == 3) return colours ? "HWC" : "THW";
  if (shape.size() == 2) return "HW";
  throw Error(
      fmt::format("{}: shape ({}) is not (T,H,W,C) with 1, 3 or 4 channels; state its axes, for example --layout CTHW",
                  where, fmt::join(shape, ",")));
}

void check_layout(const std::string& layout, const std::vector<int64_t>& shape, const std::string& where) {
  const auto times = [&](char c) { return std::count(layout.begin(), layout.end(), c); };
  if (layout.find_first_not_of("BTHWC") != std::string::npos || times('H') != 1 || times('W') != 1 || times('T') > 1 ||
      times('C') > 1)
    throw Error(fmt::format("{}: --layout {} is not made of T, H, W, C and B, each once", where, layout));
  if (layout.size() != shape.size())
    throw Error(
        fmt::format("{}: shape ({}) does not have the axes of --layout {}", where, fmt::join(shape, ","), layout));
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 0) throw Error(fmt::format("{}: shape ({}) is empty", where, fmt::join(shape, ",")));
    if (layout[i] == 'B' && shape[i] != 1)
      throw Error(
          fmt::format("{}: axis B of shape ({}) holds several clips; save one of them", where, fmt::join(shape, ",")));
  }
}

class ArraySource : public FrameSource {
 public:
  ArraySource(const std::filesystem::path& file, std::unique_ptr<ArrayFile> array, const SourceOptions& options)
      : array_(std::move(array)), range_(options.range), no_range_(options.no_range) {
    facts_.path = file.string();
    facts_.kind = file.extension().string().substr(1);
    layout_ = options.layout.empty() ? default_layout(array_->shape(), facts_.path) : options.layout;
    check_layout(layout_, array_->shape(), facts_.path);
    const at::ScalarType dtype = array_->dtype();
    if (dtype != at::kByte && dtype != at::kUInt16 && !at::isFloatingType(dtype))
      throw Error(
          fmt::format("{}: dtype {} cannot be frames; save uint8, uint16 or floats", facts_.path, dtype_name(dtype)));
    sample_ = dtype == at::kByte ? Sample::u8 : dtype == at::kUInt16 ? Sample::u16 : Sample::f32;
    describe();
  }

  const ClipFacts& facts() const override { return facts_; }

  bool read(Frame& out) override {
    if (next_ == frames_) return false;
    const size_t t = layout_.find('T');
    const at::Tensor image = in_order(t == std::string::npos ? whole() : array_->slice(t, next_), t);  // (H, W, C)
    out.shape(facts_.width, facts_.height, facts_.channels, sample_);
    const at::ScalarType as = sample_ == Sample::u8 ? at::kByte : sample_ == Sample::u16 ? at::kUInt16 : at::kFloat;
    const at::Tensor contiguous = image.to(as).contiguous();
    std::copy_n(static_cast<const std::byte*>(contiguous.const_data_ptr()), out.bytes.size(), out.bytes.data());
    out.zero = zero_, out.span = span_;
    out.time.reset();
    if (sample_ == Sample::f32) check_values(out);
    ++next_;
    return true;
  }

 private:
  void describe() {
    const auto& shape = array_->shape();
    const auto size = [&](char axis) {
      const size_t at = layout_.find(axis);
      return at == std::string::npos ? int64_t{1} : shape[at];
    };
    frames_ = size('T');
    if (size('H') > 65535 || size('W') > 65535 || size('H') * size('W') > kLargestFrame / size('C'))
      throw Error(fmt::format("{}: frames of {}x{}x{} are too large; is --layout {} right?", facts_.path, size('W'),
                              size('H'), size('C'), layout_));
    facts_.width = static_cast<int>(size('W')), facts_.height = static_cast<int>(size('H'));
    facts_.frames = frames_;
    alpha_ = size('C') == 4 && sample_ != Sample::f32;
    facts_.channels = alpha_ ? 3 : static_cast<int>(size('C'));
    if (alpha_) facts_.warnings.push_back(facts_.path + ": its fourth channel is taken for alpha and left out");
    facts_.format =
        fmt::format("{} ({}) = {}", dtype_name(array_->dtype()), fmt::join(layout_, ","), fmt::join(shape, "x"));
    const std::array<double, 2> range = range_.value_or(std::array{0.0, sample_ == Sample::u8    ? 255.0
                                                                        : sample_ == Sample::u16 ? 65535.0
                                                                                                 : 1.0});
    zero_ = static_cast<float>(range[0]);
    span_ = static_cast<float>(range[1] - range[0]);
    facts_.conversion = no_range_ && sample_ == Sample::f32
                            ? "as stored, without a range"
                            : fmt::format("as stored, [{:g}, {:g}] is [0, 1]", range[0], range[1]);
  }

  at::Tensor whole() {  // without an axis T: one frame, which is the whole array
    std::vector<at::Tensor> rows;
    for (int64_t i = 0; i < array_->shape()[0]; ++i) rows.push_back(array_->slice(0, i));
    return at::stack(rows);
  }

  /// (height, width, channels) from a slice whose axis T, at `t`, is gone.
  at::Tensor in_order(at::Tensor slice, size_t t) const {
    std::string axes = layout_;
    if (t != std::string::npos) axes.erase(t, 1);
    for (size_t b = axes.find('B'); b != std::string::npos; b = axes.find('B')) {
      slice = slice.squeeze(static_cast<int64_t>(b));
      axes.erase(b, 1);
    }
    if (axes.find('C') == std::string::npos) {
      slice = slice.unsqueeze(-1);
      axes += 'C';
    }
    const auto at = [&](char c) { return static_cast<int64_t>(axes.find(c)); };
    slice = slice.permute({at('H'), at('W'), at('C')});
    return alpha_ ? slice.slice(2, 0, 3) : slice;
  }

  /// Rounding may leave [0, 1] by an ulp or two; more means another range than the one assumed.
  void check_values(const Frame& frame) const {
    const float* v = frame.as<float>();
    float low = v[0], high = v[0];
    bool finite = true;
    for (size_t i = 0; i < frame.count(); ++i) {
      finite = finite && std::isfinite(v[i]);
      low = std::min(low, v[i]);
      high = std::max(high, v[i]);
    }
    if (!finite)
      throw Error(fmt::format("{}: frame {} holds NaN or Inf; there is no picture to compare", facts_.path, next_));
    if (range_ || no_range_ || (low >= -1e-5F && high <= 1 + 1e-5F)) return;
    throw Error(fmt::format(
        "{}: frame {} holds values from {:.4g} to {:.4g}, not in [0, 1]; state their range, for example --range -1,1",
        facts_.path, next_, low, high));
  }

  std::unique_ptr<ArrayFile> array_;
  std::optional<std::array<double, 2>> range_;
  bool no_range_, alpha_ = false;
  ClipFacts facts_;
  std::string layout_;
  Sample sample_ = Sample::f32;
  float zero_ = 0, span_ = 1;
  int64_t next_ = 0, frames_ = 0;
};

}  // namespace

std::unique_ptr<FrameSource> open_array(const std::filesystem::path& file, const SourceOptions& options) {
  auto array = open_array_file(file, options.dataset);
  if (array->shape().empty()) throw Error(fmt::format("{}: is a single number, not frames", file.string()));
  return std::make_unique<ArraySource>(file, std::move(array), options);
}

}  // namespace parity

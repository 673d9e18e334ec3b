#include "video/codec/conversion.hpp"

#include <algorithm>
#include <string_view>

namespace parity::codec {

Conversion::Conversion(ClipBeingRead& clip, const AVCodecContext& codec, bool luma) : clip_(clip), codec_(codec) {
  ClipFacts& facts = clip.facts;
  pixel_ = av_pix_fmt_desc_get(codec.pix_fmt);
  if (!pixel_ || codec.width <= 0 || codec.height <= 0)
    throw Error(fmt::format("{}: its picture format is not stated; is the file whole?", facts.path));
  const bool grey = pixel_->nb_components <= 2, rgb = (pixel_->flags & AV_PIX_FMT_FLAG_RGB) != 0;
  depth_ = pixel_->comp[0].depth;
  if (depth_ > 16 || pixel_->flags & AV_PIX_FMT_FLAG_FLOAT)
    throw Error(fmt::format("{}: {} is not supported; convert it to 8 to 16 bits", facts.path, pixel_->name));
  plane_ = luma && !rgb && pixel_->comp[0].plane == 0 && pixel_->comp[0].step == (depth_ > 8 ? 2 : 1) &&
           pixel_->comp[0].shift == 0 &&
           !(pixel_->flags & (AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_BE));
  if (!plane_)
    target_ = grey ? (depth_ > 8 ? AV_PIX_FMT_GRAY16LE : AV_PIX_FMT_GRAY8)
                   : (depth_ > 8 ? AV_PIX_FMT_RGB48LE : AV_PIX_FMT_RGB24);
  facts.luma_plane = plane_;
  facts.width = codec.width;
  facts.height = codec.height;
  facts.channels = plane_ || grey ? 1 : 3;
  facts.format = fmt::format("{} {}", avcodec_get_name(codec.codec_id), pixel_->name);
  if (pixel_->flags & AV_PIX_FMT_FLAG_ALPHA) facts.warnings.push_back(facts.path + ": its alpha channel is left out");
  facts.conversion = in_words(rgb, grey);
}

std::string Conversion::in_words(bool rgb, bool grey) const {
  if (plane_) return fmt::format("Y plane as coded, {} bits, [0, {}] is [0, 1]", depth_, (1 << depth_) - 1);
  if (rgb) return fmt::format("{} as coded", pixel_->name);
  const char* matrix = av_color_space_name(codec_.colorspace);
  const bool stated = codec_.colorspace != AVCOL_SPC_UNSPECIFIED && codec_.colorspace != AVCOL_SPC_RESERVED && matrix;
  return fmt::format("{} to {} by libswscale (bicubic), {}, {} range{}", pixel_->name, grey ? "grey" : "RGB",
                     stated ? matrix : "BT.601 (the file states no matrix)", full_range() ? "full" : "limited",
                     codec_.color_range == AVCOL_RANGE_UNSPECIFIED && !full_range() ? " (not stated)" : "");
}

bool Conversion::full_range() const {
  return codec_.color_range == AVCOL_RANGE_JPEG || std::string_view(pixel_->name).starts_with("yuvj");
}

void Conversion::convert(const AVFrame& picture, Frame& out) {
  const ClipFacts& facts = clip_.facts;
  if (picture.width != facts.width || picture.height != facts.height)
    throw Error(fmt::format("{}: frame {} is {}x{}, those before {}x{}; cut the clip there", facts.path, clip_.index,
                            picture.width, picture.height, facts.width, facts.height));
  out.zero = 0;
  plane_ ? copy_plane(picture, out) : scale(picture, out);
}

void Conversion::copy_plane(const AVFrame& picture, Frame& out) const {
  const ClipFacts& facts = clip_.facts;
  out.shape(facts.width, facts.height, 1, depth_ > 8 ? Sample::u16 : Sample::u8);
  out.span = static_cast<float>((1 << depth_) - 1);
  const size_t row = static_cast<size_t>(facts.width) * (depth_ > 8 ? 2 : 1);
  for (int y = 0; y < facts.height; ++y)
    std::copy_n(reinterpret_cast<const std::byte*>(picture.data[0] + y * int64_t{picture.linesize[0]}), row,
                out.bytes.data() + static_cast<size_t>(y) * row);
}

void Conversion::scale(const AVFrame& picture, Frame& out) {
  const ClipFacts& facts = clip_.facts;
  const bool deep = depth_ > 8;
  out.shape(facts.width, facts.height, facts.channels, deep ? Sample::u16 : Sample::u8);
  out.span = deep ? 65535 : 255;
  if (!scaler_) make_scaler(picture);
  // Its vectorised loops write whole vectors: where rows are not made of them, into rows with room at the end.
  const size_t row = out.bytes.size() / static_cast<size_t>(facts.height);
  const bool direct = row % 64 == 0;
  const size_t padded = direct ? row : (row + 127) / 64 * 64;
  if (!direct) padded_.resize(padded * static_cast<size_t>(facts.height) + 64);
  uint8_t* target[4] = {direct ? out.as<uint8_t>() : padded_.data(), nullptr, nullptr, nullptr};
  const int strides[4] = {static_cast<int>(padded), 0, 0, 0};
  if (sws_scale(scaler_.get(), picture.data, picture.linesize, 0, facts.height, target, strides) != facts.height)
    clip_.broken("colour conversion failed");
  for (size_t y = 0; !direct && y < static_cast<size_t>(facts.height); ++y)
    std::copy_n(reinterpret_cast<const std::byte*>(padded_.data() + y * padded), row, out.bytes.data() + y * row);
}

void Conversion::make_scaler(const AVFrame& picture) {
  const ClipFacts& facts = clip_.facts;
  const auto format = static_cast<AVPixelFormat>(picture.format);
  if (format != codec_.pix_fmt) clip_.broken("the picture format changes");
  // The program ffmpeg's own default (bicubic), so that both see the same RGB.
  scaler_.reset(sws_getContext(facts.width, facts.height, format, facts.width, facts.height, target_, SWS_BICUBIC,
                               nullptr, nullptr, nullptr));
  if (!scaler_) throw Error(fmt::format("{}: {} cannot be converted to RGB", facts.path, pixel_->name));
  const int* in = sws_getCoefficients(codec_.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : codec_.colorspace);
  sws_setColorspaceDetails(scaler_.get(), in, full_range(), sws_getCoefficients(SWS_CS_DEFAULT), 1, 0, 1 << 16,
                           1 << 16);
}

}  // namespace parity::codec

#include "models/wan/kinds.hpp"

#include <array>
#include <utility>

#include "trace/path.hpp"

namespace parity {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

// Ends of paths; the first that fits.
constexpr std::array kEnds{
    Row{"patch_embedding", "conv"},
    Row{"condition/sinusoid", "sinusoid"},
    Row{"fps_embedding", "embedding"},
    Row{"time_embedding.1", "silu"},
    Row{"time_projection.0", "silu"},
    Row{"fps_projection.1", "silu"},
    Row{"text_embedding.1", "gelu"},
    Row{"img_emb.proj.2", "gelu"},
    Row{".ffn.1", "gelu"},
    Row{"img_emb.proj.0", "layer_norm"},
    Row{"img_emb.proj.4", "layer_norm"},
    Row{".norm1", "layer_norm"},
    Row{".norm2", "layer_norm"},
    Row{".norm3", "layer_norm"},
    Row{"head.norm", "layer_norm"},
    Row{".norm_q", "rms_norm"},
    Row{".norm_k", "rms_norm"},
    Row{".norm_k_img", "rms_norm"},
    Row{"/modulation", "modulation"},
    Row{"/mul_add_add.0", "modulation"},
    Row{"/mul_add_add.1", "modulation"},
    Row{"/mul_add.0", "residual"},
    Row{"/mul_add.1", "residual"},
    Row{"/latents", "copy"},
    Row{"/context", "copy"},
    Row{"rope/cos", "rope"},
    Row{"rope/sin", "rope"},
};

// Inside a path, for ops that are numbered.
constexpr std::array kInside{Row{"/cast.", "cast"}, Row{"/add.", "residual"}, Row{"/rope", "rope"},
                             Row{"/attention.", "attention"}};

bool is_block(std::string_view path) {
  return path.starts_with("blocks.") && path.find_first_of("./", 7) == std::string_view::npos;
}

}  // namespace

std::string_view wan_kind(std::string_view path) {
  if (path.empty()) return "copy";
  if (is_block(path)) return "cast";  // the stream's rounding at the end of a block, where there is one
  for (const auto& [end, kind] : kEnds)
    if (path.ends_with(end)) return kind;
  for (const auto& [part, kind] : kInside)
    if (path.find(part) != std::string_view::npos) return kind;
  return is_op_path(path) ? "" : "linear";
}

}  // namespace parity

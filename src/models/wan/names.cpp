#include "models/wan/names.hpp"

#include <array>
#include <utility>

namespace parity {
namespace {

using Row = std::pair<std::string_view, std::string_view>;

// Modules below "blocks.<n>."; the originals number their norms in another order than diffusers.
constexpr std::array kBlockNames{
    Row{"modulation", "scale_shift_table"},
    Row{"norm2", "norm3"},
    Row{"norm3", "norm2"},
    Row{"ffn.0", "ffn.net.0.proj"},
    Row{"ffn.2", "ffn.net.2"},
    Row{"self_attn.q", "attn1.to_q"},
    Row{"self_attn.k", "attn1.to_k"},
    Row{"self_attn.v", "attn1.to_v"},
    Row{"self_attn.o", "attn1.to_out.0"},
    Row{"self_attn.norm_q", "attn1.norm_q"},
    Row{"self_attn.norm_k", "attn1.norm_k"},
    Row{"cross_attn.q", "attn2.to_q"},
    Row{"cross_attn.k", "attn2.to_k"},
    Row{"cross_attn.v", "attn2.to_v"},
    Row{"cross_attn.o", "attn2.to_out.0"},
    Row{"cross_attn.norm_q", "attn2.norm_q"},
    Row{"cross_attn.norm_k", "attn2.norm_k"},
    Row{"cross_attn.k_img", "attn2.add_k_proj"},
    Row{"cross_attn.v_img", "attn2.add_v_proj"},
    Row{"cross_attn.norm_k_img", "attn2.norm_added_k"},
};

constexpr std::array kTop{
    Row{"text_embedding.0", "condition_embedder.text_embedder.linear_1"},
    Row{"text_embedding.2", "condition_embedder.text_embedder.linear_2"},
    Row{"time_embedding.0", "condition_embedder.time_embedder.linear_1"},
    Row{"time_embedding.2", "condition_embedder.time_embedder.linear_2"},
    Row{"time_projection.1", "condition_embedder.time_proj"},
    Row{"img_emb.proj.0", "condition_embedder.image_embedder.norm1"},
    Row{"img_emb.proj.1", "condition_embedder.image_embedder.ff.net.0.proj"},
    Row{"img_emb.proj.3", "condition_embedder.image_embedder.ff.net.2"},
    Row{"img_emb.proj.4", "condition_embedder.image_embedder.norm2"},
    Row{"img_emb.emb_pos", "condition_embedder.image_embedder.pos_embed"},
    Row{"fps_projection.0", "fps_projection.net.0.proj"},
    Row{"fps_projection.2", "fps_projection.net.2"},
    Row{"head.modulation", "scale_shift_table"},
    Row{"head.head", "proj_out"},
};

// `name` is a row's module itself or a parameter of it.
template <typename Table>
std::string renamed(const Table& table, std::string_view name) {
  for (const auto& [from, to] : table)
    if (name == from || (name.starts_with(from) && name[from.size()] == '.'))
      return std::string(to).append(name.substr(from.size()));
  return std::string(name);
}

}  // namespace

std::string wan_diffusers_name(std::string_view original) {
  constexpr std::string_view kBlocks = "blocks.";
  if (!original.starts_with(kBlocks)) return renamed(kTop, original);
  const auto end = original.find('.', kBlocks.size());
  if (end == std::string_view::npos) return std::string(original);
  return std::string(original.substr(0, end + 1)) + renamed(kBlockNames, original.substr(end + 1));
}

}  // namespace parity

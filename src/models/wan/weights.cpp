#include "models/wan/weights.hpp"

#include <fmt/format.h>

namespace parity {

namespace {

class Loader {
 public:
  Loader(const WanConfig& config, at::ScalarType low, Precision precision, const WeightSource& source)
      : low_(low), precision_(precision), source_("wan", wan_parameters(config), source) {}

  at::Tensor tensor(const std::string& name, Slot slot) const {
    const auto found = source_.get(name);
    return found.to(dtype(slot, found.scalar_type()));
  }

  Affine affine(const std::string& name, Slot slot) const {
    return {tensor(name + ".weight", slot), tensor(name + ".bias", slot)};
  }

  bool has(const std::string& name) const { return source_.has(name); }

  WanAttentionWeights attention(const std::string& name, Slot norm, bool image) const {
    WanAttentionWeights w{affine(name + ".q", Slot::low),
                          affine(name + ".k", Slot::low),
                          affine(name + ".v", Slot::low),
                          affine(name + ".o", Slot::low),
                          tensor(name + ".norm_q.weight", norm),
                          tensor(name + ".norm_k.weight", norm),
                          {},
                          {},
                          {}};
    if (!image) return w;
    w.k_img = affine(name + ".k_img", Slot::low), w.v_img = affine(name + ".v_img", Slot::low);
    w.norm_k_img = tensor(name + ".norm_k_img.weight", norm);
    return w;
  }

 private:
  at::ScalarType dtype(Slot slot, at::ScalarType own) const {
    return redirect(slot == Slot::f32 ? at::kFloat : slot == Slot::low ? low_ : own, precision_);
  }

  at::ScalarType low_;
  Precision precision_;
  ShapedWeights source_;
};

// A recorded table is a constant of the program: fp64 widens it, it does not form a better one.
RopeTable load_rope(const WanConfig& config, RopeForm form, Precision precision, const Loader& load) {
  RopeTable table;
  if (form == RopeForm::real && load.has("rope.freqs_cos"))
    table = {{}, load.tensor("rope.freqs_cos", Slot::weight), load.tensor("rope.freqs_sin", Slot::weight)};
  else if (form != RopeForm::real && load.has("freqs"))
    table = {load.tensor("freqs", Slot::weight), {}, {}};
  else
    table = ops::rope_table(config.rope_length, config.head_dim(), form);
  for (auto* t : {&table.freqs, &table.cos, &table.sin})
    if (t->defined()) *t = t->to(redirect(t->scalar_type(), precision));
  return table;
}

void load_conditions(WanWeights& w, const WanConfig& config, const WanDtypePath& path, const Loader& load) {
  w.patch_embedding = load.affine("patch_embedding", Slot::low);
  w.time0 = load.affine("time_embedding.0", path.time_mlp), w.time2 = load.affine("time_embedding.2", path.time_mlp);
  w.time_projection = load.affine("time_projection.1", path.time_projection);
  w.text0 = load.affine("text_embedding.0", Slot::low), w.text2 = load.affine("text_embedding.2", Slot::low);
  if (config.sample_info) {
    w.fps_embedding = load.tensor("fps_embedding.weight", Slot::weight);
    w.fps0 = load.affine("fps_projection.0", path.time_projection),
    w.fps2 = load.affine("fps_projection.2", path.time_projection);
  }
  if (!config.image()) return;
  const auto norm = path.norm == Slot::input ? Slot::weight : path.norm;
  w.image_norm1 = load.affine("img_emb.proj.0", norm), w.image_norm2 = load.affine("img_emb.proj.4", norm);
  w.image1 = load.affine("img_emb.proj.1", Slot::low), w.image3 = load.affine("img_emb.proj.3", Slot::low);
  if (config.image_positions) w.image_position = load.tensor("img_emb.emb_pos", Slot::weight);
}

}  // namespace

WanWeights load_wan_weights(const WanConfig& config, const WanDtypePath& path, at::ScalarType low, Precision precision,
                            const WeightSource& source) {
  const Loader load(config, low, precision, source);
  const auto norm = path.norm == Slot::input ? Slot::weight : path.norm;
  WanWeights w;
  load_conditions(w, config, path, load);
  for (int64_t i = 0; i < config.layers; ++i) {
    const auto name = fmt::format("blocks.{}.", i);
    WanBlockWeights block;
    block.modulation = load.tensor(name + "modulation", Slot::f32);
    block.self_attn = load.attention(name + "self_attn", Slot::weight, false);
    block.cross_attn = load.attention(name + "cross_attn", Slot::weight, config.image());
    if (config.cross_attn_norm) block.norm3 = load.affine(name + "norm3", norm);
    block.ffn0 = load.affine(name + "ffn.0", Slot::low), block.ffn2 = load.affine(name + "ffn.2", Slot::low);
    w.blocks.push_back(std::move(block));
  }
  w.head_modulation = load.tensor("head.modulation", Slot::weight);
  w.head = load.affine("head.head", path.head);
  w.rope = load_rope(config, path.rope, precision, load);
  return w;
}

}  // namespace parity

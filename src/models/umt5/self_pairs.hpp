// What UMT5 has twice: a padded prompt and the same prompt cut to its length, LibTorch's attention and our own.
#pragma once
#include "models/model.hpp"
#include "models/umt5/model.hpp"

namespace parity {

/// The prompts padded to Wan's 512 tokens under a mask, against each without its padding and zeros behind it. Of the
/// padded run's tail the pipelines keep zeros, too (diffusers, pipeline_wan.py, _get_t5_prompt_embeds; SkyReels-V2
/// multiplies it by 0). "cut/sample.1"; padding must stand behind the prompt, or Error is thrown.
std::vector<SelfPair> umt5_cut_pairs(const Umt5Model& model, const Umt5Inputs& inputs);

/// Every layer's attention on the inputs that it gets in a forward: "attention/layer.0".
std::vector<SelfPair> umt5_attention_pairs(const Umt5Config& config, Precision precision, const WeightSource& weights,
                                           const Umt5Inputs& inputs);

}  // namespace parity

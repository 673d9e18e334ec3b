// What gpt-oss has twice: the forward with a cache and without, experts grouped and looped, weights in MXFP4 multiplied
// as they are and written out first, keys and values in fp8 and plain.
#pragma once
#include "models/gpt_oss/model.hpp"
#include "models/model.hpp"

namespace parity {

/// What a model is made of, to make another with one op replaced.
struct GptOssParts {
  const GptOssConfig& config;
  Precision precision;
  const WeightSource& weights;
  const GptOssOps& ops;
};

/// On a forward of `ids` (batch, tokens):
///   cached/position.3    logits token by token on the cache, after a first half at once, against all at once
///   grouped/layer.0      experts' sum, tokens sorted by expert, against one expert after the other
///   heads/layer.0        attention of our own, key heads shared, against LibTorch's ops on repeated ones
///   mxfp4/layer.0.expert.1.down   an expert's product over its weight in MXFP4: our fused kernel against LibTorch's
///                        with the same weight written out
///   fp8/layer.0          attention over keys and values from a cache in fp8 against plain ones, held to what fp8's own
///                        step makes; not in fp64
std::vector<SelfPair> gpt_oss_pairs(const GptOssParts& parts, const at::Tensor& ids);

}  // namespace parity

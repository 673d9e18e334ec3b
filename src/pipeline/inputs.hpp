// What a generation begins from, made by the reference's tokenizer and image processors.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>

namespace parity {

struct GenerationInputs {
  at::Tensor ids, mask;                    // (1, tokens) int64, the prompt padded; mask 0 where it is padding
  at::Tensor negative_ids, negative_mask;  // the same of the negative prompt; undefined without guidance
  at::Tensor image;                        // (1, 3, height, width) in [-1, 1]; image to video only
  at::Tensor pixels;                       // (1, 3, size, size), CLIP's image, normalised; image to video only
  at::Tensor noise;                        // (1, channels, frames, height, width) fp32; undefined: from the seed
};

/// `file`: tensors input_ids, attention_mask, negative_input_ids, negative_attention_mask, image, pixel_values, noise
/// (.safetensors or any other set of tensors). Throws Error naming the tensor when one that is there has another form.
GenerationInputs read_generation_inputs(const std::filesystem::path& file);

}  // namespace parity

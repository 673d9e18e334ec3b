"""transformers models as GGUF files, small ones made on the spot: what llama.cpp's own conversion does with these architectures, without its downloads.

A model is turned into two dictionaries, metadata and tensors, which a test may change before `write`: each conversion fault is such a change.
"""
import gguf
import numpy as np

ARCHITECTURES = {"LlamaForCausalLM": "llama", "Qwen2ForCausalLM": "qwen2", "Qwen3ForCausalLM": "qwen3", "GPT2LMHeadModel": "gpt2", "Olmo3ForCausalLM": "olmo2"}
TRANSPOSED = (".c_attn.weight", ".c_proj.weight", ".c_fc.weight")  # transformers' Conv1D keeps (in, out)


def permuted(weight, heads):
    """Rows of each head from halves (RoPE of transformers) to pairs (ggml's RoPE of the type that llama.cpp uses for `llama`)."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def converted(model):
    """(architecture's name in GGUF, metadata {key without the architecture: value}, tensors {name: float32 array}) of a transformers model."""
    config, arch = model.config, ARCHITECTURES[type(model).__name__]
    tensors = {}
    names = gguf.get_tensor_name_map(gguf.MODEL_ARCH[arch.upper()], config.num_hidden_layers)
    tied = config.tie_word_embeddings
    for name, value in model.state_dict().items():
        if tied and name == "lm_head.weight":
            continue  # llama.cpp then takes the embedding
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if found is None:
            raise ValueError(f"gguf has no name for {name} of {arch}")
        value = value.detach().float().numpy()
        if arch == "gpt2" and name.endswith(TRANSPOSED):
            value = value.T
        if arch == "llama" and ".q_proj." in name:
            value = permuted(value, config.num_attention_heads)
        if arch == "llama" and ".k_proj." in name:
            value = permuted(value, config.num_key_value_heads)
        tensors[found] = np.ascontiguousarray(value)
    scaled = _rope_factors(config)
    if scaled is not None:
        tensors["rope_freqs.weight"] = scaled
    return arch, _metadata(config, arch), tensors


def _metadata(config, arch):
    heads = config.num_attention_heads
    out = {"vocab_size": config.vocab_size, "context_length": config.max_position_embeddings, "embedding_length": config.hidden_size,
           "block_count": config.num_hidden_layers, "attention.head_count": heads}
    if arch == "gpt2":
        return {**out, "feed_forward_length": 4 * config.hidden_size, "attention.layer_norm_epsilon": config.layer_norm_epsilon}
    dim = getattr(config, "head_dim", None) or config.hidden_size // heads
    out |= {"feed_forward_length": config.intermediate_size, "attention.head_count_kv": config.num_key_value_heads,
            "attention.layer_norm_rms_epsilon": config.rms_norm_eps, "rope.freq_base": float(_rope(config)["rope_theta"]),
            "attention.key_length": dim, "attention.value_length": dim}
    if arch == "llama":
        out["rope.dimension_count"] = dim
    if arch == "olmo2":
        out["attention.sliding_window"] = config.sliding_window
    return out


def _rope(config):
    return config.rope_parameters.get("full_attention", config.rope_parameters)


def _rope_factors(config):
    """Llama 3's scaling: one divisor per frequency."""
    rope = getattr(config, "rope_parameters", None) or {}
    if rope.get("rope_type") != "llama3":
        return None
    dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    wavelength = 2 * np.pi * rope["rope_theta"] ** (np.arange(0, dim, 2, dtype=np.float64) / dim)
    low, high, factor = rope["low_freq_factor"], rope["high_freq_factor"], rope["factor"]
    length = rope["original_max_position_embeddings"]
    between = np.clip((length / wavelength - low) / (high - low), 0, 1)
    return (1 / ((1 - between) / factor + between)).astype(np.float32)


def write(path, arch, metadata, tensors, kinds=None):
    """Writes a GGUF file. `kinds`: {tensor name: "Q8_0"} stores those quantised; the others stay float32."""
    writer = gguf.GGUFWriter(path, arch)
    for key, value in metadata.items():
        key = f"{arch}.{key}"
        {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}[type(value)](key, value)
    writer.add_tokenizer_model("no_vocab")
    for name, value in tensors.items():
        kind = (kinds or {}).get(name)
        if kind is None:
            writer.add_tensor(name, value)
        else:
            quantised = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(name, gguf.quants.quantize(value, quantised), raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path

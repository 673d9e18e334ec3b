"""More small models of transformers and diffusers, exported by both of PyTorch's exporters."""
import numpy as np
import torch
import transformers

RANDOM = np.random.RandomState(5)
IDS = RANDOM.randint(3, 90, (2, 9))


def f(*shape):
    return RANDOM.randn(*shape).astype(np.float32)


def from_transformers(kind, model, inputs, part=None, **config):
    def make():
        made = getattr(transformers, model)(getattr(transformers, kind + "Config")(**config, attn_implementation="eager"))
        made.config.use_cache = False
        return made if part is None else getattr(made, part)
    return make, inputs


def from_diffusers(model, inputs, **config):
    def make():
        import diffusers
        return getattr(diffusers, model)(**config)
    return make, inputs


TEXT = dict(vocab_size=91, hidden_size=48, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4)
LATENTS = dict(num_attention_heads=2, attention_head_dim=12, num_layers=2, in_channels=4, sample_size=8, patch_size=2)
MODELS = {  # name: (a function that makes it, its inputs)
    "bart": from_transformers("Bart", "BartModel", {"input_ids": IDS, "decoder_input_ids": IDS[:, :5]}, vocab_size=91, d_model=48, encoder_layers=2, decoder_layers=2,
                              encoder_ffn_dim=96, decoder_ffn_dim=96, encoder_attention_heads=4, decoder_attention_heads=4, max_position_embeddings=40),
    "deberta_v2": from_transformers("DebertaV2", "DebertaV2Model", {"input_ids": IDS}, **TEXT, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=8,
                                    max_position_embeddings=40),
    "segformer, to pixels": from_transformers("Segformer", "SegformerForSemanticSegmentation", {"pixel_values": f(2, 3, 40, 32)}, num_encoder_blocks=2, depths=[1, 1], sr_ratios=[2, 1],
                                              hidden_sizes=[16, 24], num_attention_heads=[2, 3], patch_sizes=[7, 3], strides=[4, 2], mlp_ratios=[2, 2], decoder_hidden_size=20,
                                              num_labels=5),
    "poolformer": from_transformers("PoolFormer", "PoolFormerForImageClassification", {"pixel_values": f(2, 3, 64, 64)}, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 1, 1], num_labels=5),
    "hubert": from_transformers("Hubert", "HubertModel", {"input_values": f(2, 700)}, vocab_size=20, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, intermediate_size=80,
                                conv_dim=[16, 16], conv_stride=[5, 4], conv_kernel=[10, 4], num_feat_extract_layers=2, num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4),
    "kl autoencoder": from_diffusers("AutoencoderKL", {"sample": f(1, 3, 32, 24)}, block_out_channels=[16, 32], down_block_types=["DownEncoderBlock2D"] * 2,
                                     up_block_types=["UpDecoderBlock2D"] * 2, norm_num_groups=8, latent_channels=4),
    "dit": from_diffusers("DiTTransformer2DModel", {"hidden_states": f(2, 4, 8, 8), "timestep": np.array([3, 700]), "class_labels": np.array([1, 4])}, **LATENTS, out_channels=8,
                          num_embeds_ada_norm=10),
    "sd3": from_diffusers("SD3Transformer2DModel", {"hidden_states": f(2, 4, 8, 8), "encoder_hidden_states": f(2, 5, 24), "pooled_projections": f(2, 16), "timestep": np.array([3, 700])},
                          **LATENTS, joint_attention_dim=24, caption_projection_dim=24, pooled_projection_dim=16, out_channels=4, pos_embed_max_size=16),
    "an LSTM": from_transformers("Encodec", "EncodecModel", {"hidden_states": f(1, 16, 7)}, "decoder", num_filters=4, hidden_size=16, codebook_dim=16, num_lstm_layers=1,
                                 upsampling_ratios=[4, 2], sampling_rate=2400, codebook_size=16),
}
LEGACY_ALONE = {"an LSTM"}  # whose weight norm the newer exporter of this PyTorch cannot trace
DYNAMO_ALONE = {"sd3"}


def export(name, exporter, file):
    """Returns the inputs that the exported graph takes."""
    make, inputs = MODELS[name]
    torch.manual_seed(0)
    made = make().eval()
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * (.2 if parameter.dim() == 1 else .05))
        more = {} if exporter == "dynamo" else {"opset_version": 17}
        torch.onnx.export(made, (), file, kwargs={k: torch.tensor(v) for k, v in inputs.items()}, dynamo=exporter == "dynamo", input_names=list(inputs), verbose=False, **more)
    return inputs

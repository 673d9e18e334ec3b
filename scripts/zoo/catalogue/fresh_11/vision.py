"""Models of images and clips: mixing without attention, attention along axes, over time and space apart, in place of convolutions;
latents that read media; a graph with attention."""
from selftest_models.weights import integers

from ...entry import Entry
from ...inputs import floats


def _seen(name, model, config, inputs, **more):
    return Entry(name, "vision", model, config, inputs, **more)


ENTRIES = [
    _seen("mixer", "mlp_mixer_pytorch:MLPMixer", dict(image_size=24, channels=3, patch_size=6, dim=48, depth=3, num_classes=29), floats(input=(3, 24, 24))),
    _seen("time_then_space", "timesformer_pytorch:TimeSformer", dict(dim=48, num_frames=4, num_classes=29, image_size=24, patch_size=6, depth=2, heads=4, dim_head=12),
          floats(video=(4, 3, 24, 24)), dtypes=("fp32",)),
    _seen("bottleneck_attention", "bottleneck_transformer_pytorch:BottleStack", dict(dim=28, fmap_size=(12, 16), dim_out=44, num_layers=2, heads=3,
                                                                                     dim_head=12, rel_pos_emb=True), floats(x=(28, 12, 16))),
    _seen("axial_image", "axial_attention:AxialImageTransformer", dict(dim=48, depth=2, heads=4, reversible=False, axial_pos_emb_shape=(10, 12)), floats(x=(48, 10, 12))),
    _seen("media_latents", "flamingo_pytorch:PerceiverResampler", dict(dim=48, depth=2, dim_head=12, heads=4, num_latents=9, num_media_embeds=4), floats(x=(3, 13, 48))),
    _seen("graph_attention", "torch_geometric.nn.models:GAT", dict(in_channels=20, hidden_channels=28, num_layers=3, out_channels=12, v2=True, heads=4),
          lambda seed: [{"x": floats(x=(19, 20))(seed)[0]["x"].flatten(0, 1), "edge_index": integers("edges", (2, 120), 38, seed)}], batch=False),
]

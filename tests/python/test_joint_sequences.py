"""Joint sequences, a text's tokens and an image's: their lengths differ with the text's, where one side pads it or has the samples in one batch."""
import diffusers
import nameless
import numpy as np
import parity_probe
import pytest
import torch
from spread_models import judged, saved, spread
from test_ragged_batch import module_results

G = torch.Generator().manual_seed(1)
IMAGES, TEXTS = torch.randn(2, 4, 8, 6, generator=G), [torch.randn(1, length, 24, generator=G) for length in (5, 3)]
PATCHES, TEXT = torch.randn(2, 24, 16, generator=G), torch.randn(2, 5, 24, generator=G)


def lumina2():
    """Text, then image, then the batch's padding."""
    return spread(diffusers.Lumina2Transformer2DModel(sample_size=8, patch_size=2, in_channels=4, hidden_size=48, num_layers=2, num_refiner_layers=1, num_attention_heads=4,
                                                      num_kv_heads=2, multiple_of=8, axes_dim_rope=(4, 4, 4), axes_lens=(64, 32, 32), cap_feat_dim=24))


def qwen_image():
    """Text, its padding, then image."""
    return spread(diffusers.QwenImageTransformer2DModel(patch_size=2, in_channels=16, out_channels=4, num_layers=2, attention_head_dim=16, num_attention_heads=2,
                                                        joint_attention_dim=24, axes_dims_rope=(4, 6, 6)))


def one_batch(padded=5):
    text, mask = torch.zeros(2, padded, 24), torch.zeros(2, padded, dtype=torch.long)
    for i, tokens in enumerate(TEXTS):
        text[i, :tokens.shape[1]], mask[i, :tokens.shape[1]] = tokens[0], 1
    return [{"hidden_states": IMAGES, "encoder_hidden_states": text, "encoder_attention_mask": mask, "timestep": torch.tensor([.3, .3])}]


def calls():
    return [{"hidden_states": IMAGES[i:i + 1], "encoder_hidden_states": tokens, "encoder_attention_mask": torch.ones(1, tokens.shape[1], dtype=torch.long),
             "timestep": torch.tensor([.3])} for i, tokens in enumerate(TEXTS)]


def static_text(padding):
    text = torch.cat([TEXT, torch.zeros(2, padding, 24)], 1)
    mask = (torch.arange(5 + padding) < 5).long().expand(2, -1).contiguous()
    return [{"hidden_states": PATCHES, "encoder_hidden_states": text, "encoder_hidden_states_mask": mask, "timestep": torch.tensor([.3, .3]), "img_shapes": [[(1, 4, 6)]] * 2}]


def record(model, file, arguments, level="op"):
    with torch.no_grad(), parity_probe.record(model.eval(), file, level=level):
        for call in arguments:
            model(**call, return_dict=False)
    return file


def other_weight(model):
    with torch.no_grad():
        model.layers[1].feed_forward.linear_1.weight[3] *= 1.01
    return model


RUNS = {"batch beside calls": (one_batch(), calls(), 350), "calls beside a batch": (calls(), one_batch(), 700), "a batch of a static length": (one_batch(8), calls(), 350)}


@pytest.mark.parametrize("wrong", [False, True], ids=["right", "wrong"])
@pytest.mark.parametrize("run", RUNS)
def test_samples_in_calls(run, wrong, tmp_path):
    reference, port, least = RUNS[run]
    files = record(lumina2(), tmp_path / "reference.h5", reference), record((other_weight if wrong else lambda m: m)(lumina2()), tmp_path / "port.h5", port)
    report, red = judged(*files, tmp_path)
    assert any(f"the {'reference' if len(reference) == 1 else 'port'} ran 2 samples as one batch" in warning for warning in report["warnings"]), report["warnings"]
    if wrong:
        assert report["first_divergence"]["path"].startswith("layers.1.feed_forward.linear_1"), report["first_divergence"]
    else:
        assert report["verdict"] == "pass" and report["counts"]["pass"] >= least, (red, report["counts"])


@pytest.mark.parametrize("who", ["reference", "port"])
def test_a_static_text(who, tmp_path):
    """Of 289 values of ops six are left out; 16 before joint sequences were told."""
    files = [record(qwen_image(), tmp_path / f"{side}.h5", static_text(4 if side == who else 0)) for side in ("reference", "port")]
    report, red = judged(*files, tmp_path)
    assert report["verdict"] == "pass", red
    joint = [op for op in report["ops"] if len(op["shape"]) == 4 and op["shape"][1] == 5 + 24]
    assert len(joint) == 2 * 3, [op["shape"] for op in report["ops"]]


def test_a_static_text_under_names_of_its_own(tmp_path):
    reference, port = record(qwen_image(), tmp_path / "reference.h5", static_text(0)), record(qwen_image(), tmp_path / "port.h5", static_text(4))
    nameless.rewrite(port, tmp_path / "own.h5")
    report, red = judged(reference, tmp_path / "own.h5", tmp_path)
    assert report["verdict"] == "pass" and any("the port pads 5 tokens to 9" in warning for warning in report["warnings"]), (red, report["warnings"])
    assert len([op for op in report["ops"] if len(op["shape"]) == 4 and op["shape"][1] == 5 + 24]) == 2 * 3, report["counts"]


def test_packed_texts_beside_images_of_one_length(tmp_path):
    """Of samples one behind the other only the texts' padding is gone: the images have none."""
    lengths, text, mask = (5, 3), TEXT.clone(), torch.ones(2, 5, dtype=torch.long)
    text[1, 3:], mask[1, 3:] = 0, 0
    shapes = {"timestep": torch.tensor([.3, .3]), "img_shapes": [[(1, 4, 6)]] * 2}
    reference = record(qwen_image(), tmp_path / "reference.h5", [{"hidden_states": PATCHES, "encoder_hidden_states": text, "encoder_hidden_states_mask": mask, **shapes}])
    port = record(qwen_image(), tmp_path / "port.h5", [{"hidden_states": PATCHES[i:i + 1], "encoder_hidden_states": text[i:i + 1, :n], "encoder_hidden_states_mask": mask[i:i + 1, :n],
                                                        "timestep": torch.tensor([.3]), "img_shapes": [[(1, 4, 6)]]} for i, n in enumerate(lengths)])
    parts = {}
    for path, value in module_results(port):
        parts.setdefault(path, []).append(value)
    packed = {path: np.concatenate(values, 1) for path, values in parts.items() if len(values) == 2 and values[0].ndim == 3}
    report, red = judged(reference, saved(tmp_path / "packed.h5", packed), tmp_path)
    assert any("one behind the other without padding (5, 3 tokens)" in warning for warning in report["warnings"]), report["warnings"]
    assert not red and report["counts"]["pass"] >= len(packed) > 50, (red, len(packed), report["counts"])

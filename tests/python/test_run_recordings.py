"""`parity-check run` on recordings that its users make: diffusers' two classes in half width, the arguments cast before or inside
the recording, batches of two, odd sizes. The C++ re-implementation passes on each, in every dtype."""
import json
import os
import sys
from pathlib import Path

import pytest

import h5py
import program

torch = pytest.importorskip("torch")
diffusers = pytest.importorskip("diffusers")
pytest.importorskip("accelerate")   # without it diffusers refuses to keep some modules in float32
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

import parity_probe  # noqa: E402
from reference_models.weights import spread_weights  # noqa: E402

SMALL = dict(num_attention_heads=2, attention_head_dim=12, ffn_dim=52, num_layers=3, text_dim=24, rope_max_seq_len=16)
IMAGE = dict(SMALL, in_channels=36, image_dim=20, added_kv_proj_dim=24)
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}


def loaded(cls, config, dtype, folder):
    torch.manual_seed(7)
    spread_weights(cls(**config), 5).save_pretrained(folder / "model")   # as users load it: what stays in float32 does
    model = cls.from_pretrained(folder / "model", torch_dtype=dtype).eval()
    model.register_to_config(_name_or_path="")
    return model


def arguments(config, image):
    g = torch.Generator().manual_seed(3)
    made = {"hidden_states": torch.randn(2, config.get("in_channels", 16), 3, 6, 10, generator=g),
            "encoder_hidden_states": torch.randn(2, 512 if image else 17, config["text_dim"], generator=g)}
    if image:
        made["encoder_hidden_states_image"] = torch.randn(2, 33, config["image_dim"], generator=g)
    return made


@pytest.mark.parametrize("name, image, half, cast_inside", [
    ("SkyReelsV2Transformer3DModel", False, "bf16", ["hidden_states", "encoder_hidden_states"]),
    ("WanTransformer3DModel", True, "bf16", ["hidden_states", "encoder_hidden_states", "encoder_hidden_states_image"]),
    ("SkyReelsV2Transformer3DModel", True, "bf16", ["encoder_hidden_states"]),   # latents in bf16, text kept in float32
    ("WanTransformer3DModel", False, "bf16", []),
    ("WanTransformer3DModel", False, "fp16", ["hidden_states"]),
    ("SkyReelsV2Transformer3DModel", False, "fp16", []),
])
def test_a_users_recording_passes(tmp_path, name, image, half, cast_inside):
    config, dtype = IMAGE if image else SMALL, HALF[half]
    model = loaded(getattr(diffusers, name), config, dtype, tmp_path)
    given = {k: v if k in cast_inside else v.to(dtype) for k, v in arguments(config, image).items()}
    with torch.no_grad(), parity_probe.record(model, str(tmp_path / "own.h5")):
        model(**{k: v.to(dtype) for k, v in given.items()}, timestep=torch.tensor([713, 998]), return_dict=False)
    with h5py.File(tmp_path / "own.h5") as file:
        provenance = json.loads(file.attrs["provenance"])
    assert provenance["module"].startswith("diffusers.") and provenance["kernel_settings"] == {
        k: v for k, v in os.environ.items() if k.startswith(("MKL_", "ONEDNN_", "DNNL_"))}
    done = program.run("run", "--layer", "all", "--reference", tmp_path / "own.h5", "--out", tmp_path / "out")
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    rows = {dtype: sum(op["dtype"] == dtype for op in report["ops"]) for dtype in ("fp64", "fp32", half)}
    assert min(rows.values()) > 100, rows

"""The reference models: in fp32 they are diffusers' models (an independent writing), in bf16 they round where their path says.

    python -m pytest tests/python/test_reference_models.py      needs torch; the comparisons with diffusers also diffusers
"""
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from reference_models import recipes  # noqa: E402
from reference_models.names import diffusers_name  # noqa: E402
from reference_models.wan_dtypes import dtype_path  # noqa: E402
from reference_models.wan_original import WanOriginal, causal_mask  # noqa: E402
from reference_models.weights import spread_weights  # noqa: E402

BF16, F32 = torch.bfloat16, torch.float32
SMALL = dict(dim=64, ffn_dim=160, num_heads=2, num_layers=2, text_dim=32, image_dim=40, rope_len=32)
PATHS = ["sky_ac", "sky_noac", "wan"]


def model(path="sky_ac", low=F32, seed=3, **config):
    config = {**SMALL, **config}
    if config.get("model_type") == "i2v":
        config.setdefault("in_dim", 36)
    return spread_weights(WanOriginal(config, path, low), seed).round_weights_().eval()


def inputs(config, batch=1, frames=3, text=None, per_frame=False, seed=7):
    g = torch.Generator().manual_seed(seed)
    draw = lambda *shape: torch.randn(*shape, generator=g).to(BF16).float()   # noqa: E731  (exact in both precisions)
    text = text or config["text_len"]
    t = torch.tensor([998, 713])[:batch]
    if per_frame:
        t = torch.tensor([[998, 713, 41, 5], [999, 640, 320, 0]])[:batch, :frames]
    d = dict(x=draw(batch, 16, frames, 8, 12), t=t, context=draw(batch, text, config["text_dim"]))
    if config["model_type"] == "i2v":
        d["y"] = draw(batch, 20, frames, 8, 12)
        d["clip_fea"] = draw(batch, config["image_tokens"], config["image_dim"])
    if config["inject_sample_info"]:
        d["fps"] = torch.tensor([1, 0])[:batch]
    return d


def run(m, d):
    with torch.no_grad():
        return m(**d)


def rel(got, want):
    return ((got.double() - want.double()).norm() / want.double().norm()).item()


# --- against diffusers, fp32 ------------------------------------------------------------------------------------------
def diffusers_twin(m):
    """diffusers' class of the same family with the same weights."""
    diffusers = pytest.importorskip("diffusers")
    c = m.config
    i2v = c["model_type"] == "i2v"
    args = dict(
        patch_size=c["patch_size"], num_attention_heads=c["num_heads"], attention_head_dim=c["dim"] // c["num_heads"],
        in_channels=c["in_dim"], out_channels=c["out_dim"], text_dim=c["text_dim"], freq_dim=c["freq_dim"],
        ffn_dim=c["ffn_dim"], num_layers=c["num_layers"], image_dim=c["image_dim"] if i2v else None,
        added_kv_proj_dim=c["dim"] if i2v else None, rope_max_seq_len=c["rope_len"])
    if c["dtype_path"] == "wan":
        twin = diffusers.WanTransformer3DModel(**args)
    else:
        twin = diffusers.SkyReelsV2Transformer3DModel(
            **args, inject_sample_info=c["inject_sample_info"], num_frame_per_block=c["num_frame_per_block"] or 1)
    twin.load_state_dict({diffusers_name(k): v for k, v in m.state_dict().items()})   # strict: every name must meet
    return twin.eval()


def run_diffusers(twin, d):
    x = torch.cat([d["x"], d["y"]], 1) if "y" in d else d["x"]
    more = {"encoder_hidden_states_image": d.get("clip_fea")}
    if "fps" in d:
        more["fps"] = d["fps"].tolist()
    if d["t"].dim() == 2:
        more["enable_diffusion_forcing"] = True
    with torch.no_grad():
        return twin(hidden_states=x, timestep=d["t"], encoder_hidden_states=d["context"], return_dict=False, **more)[0]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("model_type", ["t2v", "i2v"])
def test_fp32_equals_diffusers(path, model_type):
    m = model(path, model_type=model_type)
    d = inputs(m.config, batch=2)
    assert rel(run(m, d), run_diffusers(diffusers_twin(m), d)) < 1e-5


@pytest.mark.parametrize("frames_per_block", [0, 2])
@pytest.mark.parametrize("fps", [False, True])
def test_fp32_diffusion_forcing_equals_diffusers(frames_per_block, fps):
    m = model("sky_noac", num_frame_per_block=frames_per_block, inject_sample_info=fps, text_len=20)
    # diffusers cannot add the rate to per-frame time steps of more than one sample
    d = inputs(m.config, batch=1 if fps else 2, frames=4, per_frame=True)
    assert rel(run(m, d), run_diffusers(diffusers_twin(m), d)) < 1e-5


def test_fps_without_diffusion_forcing_equals_diffusers():
    m = model("sky_noac", inject_sample_info=True, text_len=20)
    d = inputs(m.config, batch=2)
    assert rel(run(m, d), run_diffusers(diffusers_twin(m), d)) < 1e-5


# --- what each input does ---------------------------------------------------------------------------------------------
def test_a_causal_block_does_not_see_later_frames():
    m = model("sky_noac", num_frame_per_block=2, text_len=20)
    d = inputs(m.config, frames=4, per_frame=True)
    before = run(m, d)
    d["x"][:, :, 3] += 1
    after = run(m, d)
    assert torch.equal(before[:, :, :2], after[:, :, :2])
    assert not torch.equal(before[:, :, 2], after[:, :, 2])   # the same block, so it sees frame 3


def test_block_size_one_is_causal_here():
    sees = causal_mask((3, 1, 2), 1)[0, 0]
    assert sees.int().tolist()[0] == [1, 1, 0, 0, 0, 0]
    assert sees.int().tolist()[5] == [1] * 6


def test_one_time_step_for_all_frames_is_the_plain_model():
    m = model("sky_noac", text_len=20)
    d = inputs(m.config)
    plain = run(m, d)
    d["t"] = d["t"].view(1, 1).repeat(1, 3)
    assert rel(run(m, d), plain) < 1e-6


@pytest.mark.parametrize("name", ["x", "y", "t", "context", "clip_fea", "fps"])
def test_every_input_reaches_the_output(name):
    m = model("sky_ac", model_type="i2v", inject_sample_info=True, text_len=20, image_tokens=9)
    d = inputs(m.config)
    before = run(m, d)
    d[name] = 1 - d[name] if name == "fps" else d[name] - 100 if name == "t" else d[name].roll(1, -1)
    assert rel(run(m, d), before) > 1e-3


def test_every_weight_reaches_the_output():
    m = model("sky_ac", model_type="i2v", inject_sample_info=True, text_len=20, image_tokens=9)
    m(**inputs(m.config)).square().sum().backward()
    silent = [n for n, p in m.named_parameters() if p.grad is None or not p.grad.abs().max() > 1e-6]
    assert silent == []


# --- where it rounds --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("model_type", ["t2v", "i2v"])
def test_bf16_lies_at_bf16_distance_from_its_twin(path, model_type):
    kind = dict(model_type=model_type, text_len=20, image_tokens=9)
    low, wide = model(path, BF16, **kind), model(path, F32, **kind)
    wide.load_state_dict({k: v.float() for k, v in low.state_dict().items()})
    d = inputs(low.config)
    cast = {k: v.to(BF16) if path == "sky_noac" and v.is_floating_point() else v for k, v in d.items()}
    if path != "sky_noac":
        cast["context"] = d["context"].to(BF16)
    out = run(low, cast)
    assert out.dtype == F32
    assert 5e-4 < rel(out, run(wide, d)) < 3e-2


def dtypes(path, model_type="t2v"):
    m = model(path, BF16, model_type=model_type, text_len=20, image_tokens=9)
    d = {k: v.to(BF16) if v.is_floating_point() else v for k, v in inputs(m.config).items()}
    seen = {}
    for name, module in list(m.named_modules())[1:]:
        module.register_forward_hook(lambda _m, i, o, name=name: seen.update({name: (i[0].dtype, o.dtype)}))
    run(m, d)
    return seen


# The rows that tell the paths apart; each was read off the running originals.
EXPECTED = [
    # module, path, kind, dtype in, dtype out
    ("blocks.0.norm1", "sky_ac", "t2v", BF16, F32),
    ("blocks.0.norm1", "sky_noac", "t2v", BF16, BF16),
    ("blocks.0.norm1", "wan", "t2v", BF16, BF16),
    ("blocks.1.norm1", "wan", "t2v", F32, F32),
    ("blocks.1.norm1", "sky_ac", "t2v", BF16, F32),
    ("blocks.0.norm3", "sky_ac", "t2v", BF16, F32),
    ("blocks.0.norm3", "sky_ac", "i2v", F32, F32),
    ("blocks.0.norm3", "sky_noac", "t2v", BF16, BF16),
    ("blocks.0.norm3", "sky_noac", "i2v", BF16, BF16),
    ("blocks.0.norm3", "wan", "i2v", F32, F32),
    ("blocks.0.norm2", "sky_noac", "t2v", F32, F32),
    ("blocks.0.self_attn.norm_q", "sky_ac", "t2v", BF16, F32),
    ("blocks.0.self_attn.norm_q", "wan", "t2v", BF16, F32),
    ("blocks.0.self_attn.o", "sky_ac", "t2v", BF16, BF16),
    ("blocks.0.self_attn.o", "wan", "t2v", F32, BF16),
    ("blocks.0.ffn", "sky_ac", "t2v", BF16, BF16),
    ("blocks.0.ffn", "sky_ac", "i2v", F32, BF16),
    ("blocks.1", "sky_ac", "t2v", BF16, BF16),
    ("blocks.1", "wan", "t2v", F32, F32),
    ("time_embedding", "sky_ac", "t2v", BF16, F32),
    ("time_embedding", "wan", "t2v", F32, F32),
    ("img_emb.proj.0", "sky_ac", "i2v", BF16, F32),
    ("img_emb.proj.4", "sky_ac", "i2v", BF16, F32),
    ("img_emb.proj.4", "sky_noac", "i2v", BF16, BF16),
    ("head.norm", "sky_noac", "t2v", BF16, F32),
    ("head.head", "sky_noac", "t2v", F32, F32),
]


@pytest.mark.parametrize("path,model_type", sorted({(row[1], row[2]) for row in EXPECTED}))
def test_boundary_dtypes(path, model_type):
    seen = dtypes(path, model_type)
    for name, _, _, into, out in (row for row in EXPECTED if row[1:3] == (path, model_type)):
        assert seen[name] == (into, out), name


def test_weights_are_kept_where_the_path_keeps_them():
    assert {p.dtype for p in model("sky_ac", BF16).parameters()} == {BF16}
    assert {p.dtype for p in model("wan", BF16).parameters()} == {F32}
    assert model("sky_ac", BF16).freqs.dtype == torch.complex64
    assert model("wan", BF16).freqs.dtype == torch.complex128
    with pytest.raises(ValueError, match="sky_ac, sky_noac, wan"):
        dtype_path("sky")


# --- the weights themselves -------------------------------------------------------------------------------------------
def test_spread_weights_are_reproducible_and_exercise_everything():
    kind = dict(model_type="i2v", inject_sample_info=True)
    one, two, other = model(**kind), model(**kind), model(**kind, seed=4)
    for (name, p), q, r in zip(one.named_parameters(), two.parameters(), other.parameters()):
        assert torch.equal(p, q) and not torch.equal(p, r), name
        assert p.count_nonzero() == p.numel() and p.std() > 1e-3, name
        if "norm" in name and name.endswith("weight"):
            assert 0.02 < (p - 1).abs().mean() < 0.5, name


@pytest.mark.parametrize("model_type", ["t2v", "i2v"])
def test_activations_stay_sane(model_type):
    m = model(model_type=model_type, inject_sample_info=True, text_len=20, image_tokens=9)
    size = {}
    for name, module in m.named_modules():
        module.register_forward_hook(lambda _m, i, o, name=name: size.update({name: o.pow(2).mean().sqrt().item()}))
    d = inputs(m.config)
    run(m, d)
    assert {n: v for n, v in size.items() if not 0.05 < v < 10} == {}
    _, e0 = m.embed_time(d["t"], d["fps"], (3, 4, 6))
    gates = m.blocks[0].modulation[:, (2, 5)] + e0[:, (2, 5)]
    assert 0.4 < gates.mean() < 1.1 and gates.std() < 0.5


# --- the recipes of the embedded dumps --------------------------------------------------------------------------------
@pytest.mark.parametrize("recipe", recipes.RECIPES, ids=lambda r: r.name)
def test_recipe_and_its_twin_are_one_model(recipe):
    if recipe.dtype_path in ("dsky", "dwan", "diffusers"):
        pytest.importorskip("diffusers")
        pytest.importorskip("accelerate")
    if recipe.dtype_path == "transformers":
        pytest.importorskip("transformers")
    low, low_inputs = recipes.build(recipe, "bf16")
    wide, wide_inputs = recipes.build(recipe, "fp32")
    kept = {name for name, p in low.named_parameters() if p.dtype == F32}
    for (name, p), q in zip(low.named_parameters(), wide.parameters()):
        assert q.dtype == F32 and torch.equal(p.float(), q), name
    if recipe.dtype_path == "wan":
        assert len(kept) == len(list(low.parameters()))
    elif recipe.dtype_path.startswith("sky") or recipe.dtype_path in ("transformers", "diffusers"):
        assert not kept
    else:   # the modules that diffusers keeps in float32, and no others
        words = ("time_embedder", "scale_shift_table", "norm1", "norm2", "norm3")
        assert kept == {n for n, _ in low.named_parameters() if any(word in n for word in words)}
    for name, value in low_inputs.items():
        if torch.is_tensor(value):
            assert torch.equal(value.double(), wide_inputs[name].double()), name
    out = result(run(wide, wide_inputs))
    assert 5e-4 < rel(result(run(low, low_inputs)), out) < 3e-2
    assert torch.equal(result(run(*recipes.build(recipe, "fp32"))), out)   # a second build is the same model


def result(output):
    return output[0] if isinstance(output, tuple) else output


def test_embedded_dumps_are_those_of_the_manifest():
    script = Path(__file__).resolve().parents[2] / "scripts" / "record_reference_dumps.py"
    done = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

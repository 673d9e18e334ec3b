"""transformers' FlaxGPT2LMHeadModel as a port of GPT2LMHeadModel: both recorded, paired by probes/maps/pairs/flax_gpt2.map, compared with numpy; then ten
faults in the port, each with the module at whose output it first shows when the port runs free, and its name."""
import json
import pathlib
import re

import h5py
import numpy as np
import pytest
import program

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
if int(transformers.__version__.split(".")[0]) > 4:
    pytest.skip("transformers 5 has no Flax models", allow_module_level=True)

import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
from transformers.models.gpt2 import modeling_flax_gpt2 as port  # noqa: E402

import parity_probe  # noqa: E402
from jax_recordings import Recording, found, same  # noqa: E402

MAP = pathlib.Path(__file__).parents[2] / "probes/maps/pairs/flax_gpt2.map"
CONFIG = dict(n_layer=2, n_embd=32, n_head=4, vocab_size=50, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)
IDS = np.random.RandomState(0).randint(0, 50, (1, 12))  # PyTorch has one row of positions for the whole batch, Flax one each
AGREE = 2e-5  # relative L2; the two differ by 2e-7 where nothing is wrong, the least fault by 1e-4


def rules():
    """[(pattern of the reference's path, candidate's path)] of the map: the small part of its language that this map uses."""
    out = []
    for line in MAP.read_text().splitlines():
        line = line.split("#")[0].strip()
        if line:
            reference, candidate = (s.strip() for s in line.split("="))
            out.append((re.compile(re.escape(reference).replace(r"\{i\}", "(?P<i>[^./]+)")), candidate))
    return out


def to_candidate(path):
    for pattern, candidate in reversed(rules()):
        m = pattern.fullmatch(path)
        if m:
            return candidate.replace("{i}", m.groupdict().get("i") or "")
    return path


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """(folder, [(module path, output)] of the PyTorch model in the order in which modules return, its weights)."""
    folder = tmp_path_factory.mktemp("gpt2")
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**CONFIG)).eval()
    with torch.no_grad():
        for p in model.parameters():
            p.add_(torch.randn_like(p) * 0.1)
    model.save_pretrained(folder / "model")
    with torch.no_grad(), parity_probe.record(model, folder / "ref.h5"):
        model(torch.tensor(IDS), use_cache=False)
    with h5py.File(folder / "ref.h5", "r") as f:
        events = [json.loads(line) for line in f["trace/events"][()].tobytes().split(b"\n") if line]
        path = {e["id"]: e["path"] for e in events if e["e"] == "call"}
        outputs = [(path[e["id"]], f["values"][e["outputs"][0]["k"]][()]) for e in events if e["e"] == "ret"]
        weights = {name: x[()] for name, x in f["weights"].items()}
    return folder, outputs, weights


def flax_model(folder, **changes):
    config = transformers.GPT2Config.from_pretrained(folder / "model", **changes)
    return transformers.FlaxGPT2LMHeadModel.from_pretrained(folder / "model", from_pt=True, config=config)


def relative(a, b):
    assert a.shape == b.shape
    return np.linalg.norm((a.astype(np.float64) - b).ravel()) / np.linalg.norm(b.astype(np.float64).ravel())


def first_difference(outputs, candidate):
    """The first reference module whose counterpart differs, None; a missing counterpart raises KeyError."""
    return next((path for path, x in outputs if not relative(candidate.output[to_candidate(path), 0], x) < AGREE), None)


def has_compare():
    try:
        return "--map" in program.run("compare", "--help").stdout
    except OSError:
        return False


def compare(folder, candidate, tmp_path):
    """(exit status, (path, call, name of the fault) of the first divergence) of `parity-check compare`."""
    command = ["compare", folder / "ref.h5", candidate, "--map", MAP, "--json", tmp_path / "report.json", "--quiet"]
    status = program.run(*command).returncode
    return status, found(json.loads((tmp_path / "report.json").read_text()))


@pytest.mark.parametrize("jit", [False, True])
def test_every_module_agrees(reference, tmp_path, jit):
    folder, outputs, weights = reference
    model = flax_model(folder)
    jitted = jax.jit(lambda params, ids: model(ids, params=params).logits)
    run = lambda ids: jitted(model.params, ids) if jit else model(ids).logits  # noqa: E731
    logits = run(IDS)
    with parity_probe.jax.record(model, tmp_path / "cand.h5", functions=["jax.nn:gelu"]):
        assert same(run(IDS), logits)
    assert same(run(IDS), logits)
    r = Recording(tmp_path / "cand.h5")
    errors = {path: relative(r.output[to_candidate(path), 0], x) for path, x in outputs}
    assert len(errors) == 31 and max(errors.values()) < 1e-6, sorted(errors.items(), key=lambda e: -e[1])[:3]
    assert r.model == "FlaxGPT2LMHeadModel" and r.about["config"]["n_embd"] == 32 and r.about["libraries"]["transformers"] == transformers.__version__
    if has_compare():
        assert compare(folder, tmp_path / "cand.h5", tmp_path) == (0, None)
    names = {"weight": {"ln": "scale", "c_": "kernel", "wt": "embedding", "wp": "embedding"}}
    for name, x in weights.items():  # every parameter of one side is one of the other's
        if re.search(r"(?<!\.attn)\.(weight|bias)$", name) and name != "lm_head.weight":  # attn.bias is PyTorch's causal mask
            stem, kind = name.rsplit(".", 1)
            kind = names.get(kind, {}).get(stem.rsplit(".", 1)[1][:2], kind)
            assert same(r.weight[f"{stem}.{kind}"], x.T if kind == "kernel" else x), name


def test_generation_with_a_cache(tmp_path):
    """A while loop inside: each step's tensors are there, and agree with the whole sequence at once."""
    model = transformers.FlaxGPT2LMHeadModel(transformers.GPT2Config(**{**CONFIG, "n_layer": 1}))
    run = lambda: model.generate(IDS[:, :3], max_length=6, do_sample=False, pad_token_id=0, eos_token_id=49).sequences  # noqa: E731
    tokens = run()
    with parity_probe.jax.record(model, tmp_path / "a.h5"):
        assert same(run(), tokens)
    r = Recording(tmp_path / "a.h5")
    steps = [x for (path, _), x in r.output.items() if path == "lm_head"]
    assert [x.shape for x in steps] == [(1, 3, 50), (1, 1, 50), (1, 1, 50)]
    whole = model(np.asarray(tokens)).logits
    assert all(np.allclose(x[:, -1], whole[:, 2 + i], atol=1e-5) for i, x in enumerate(steps))


def with_parameter(model, path, change):
    tree = model.params
    for step in path[:-1]:
        tree = tree[step]
    tree[path[-1]] = change(tree[path[-1]])


class InterleavedHeads(port.FlaxGPT2Attention):
    def _split_heads(self, x):
        return x.reshape(x.shape[:2] + (self.head_dim, self.num_heads)).swapaxes(2, 3)


class WithoutResidual(port.FlaxGPT2Block):
    def __call__(self, x, attention_mask=None, *unused, deterministic=True, init_cache=False, output_attentions=False, **none):
        attended = self.attn(self.ln_1(x), attention_mask=attention_mask, deterministic=deterministic, init_cache=init_cache,
                             output_attentions=output_attentions)
        x = attended[0]  # + x
        return (x + self.mlp(self.ln_2(x), deterministic=deterministic), *attended[1:])


def _weights_of(change):
    honest = port.dot_product_attention_weights
    return lambda query, key, **more: honest(*change(query, key), **more)


def _causal_mask(x, dtype):
    n = x.shape[-1]
    return jnp.tril(jnp.ones((1, 1, n, n), dtype), 1)


# name: (configuration changes, what is done to the model and the port's source, arguments of the call, where it first shows, its name in the diagnosis)
_H0 = "transformer.h.0."
FAULTS = {
    "norm-eps": (dict(layer_norm_epsilon=1e-6), None, {}, _H0 + "ln_1", "norm eps"),
    "gelu-erf": (dict(activation_function="gelu"), None, {}, _H0 + "mlp.act", "GELU form"),
    "attention-scale": ({}, lambda m, patch: patch("dot_product_attention_weights", _weights_of(lambda q, k: (q * 8 ** 0.5, k))), {}, _H0 + "attn.c_proj", "attention scale"),
    "mask-off-by-one": ({}, lambda m, patch: patch("make_causal_mask", _causal_mask), {}, _H0 + "attn.c_proj", "mask off by one"),
    "position-off-by-one": ({}, None, dict(position_ids=np.arange(1, 13)[None]), "transformer.wpe", "position off by one"),
    "missing-bias": ({}, lambda m, patch: with_parameter(m, ("transformer", "h", "1", "mlp", "c_fc", "bias"), jnp.zeros_like), {}, "transformer.h.1.mlp.c_fc", "missing bias"),
    "transposed": ({}, lambda m, patch: with_parameter(m, ("transformer", "h", "0", "attn", "c_proj", "kernel"), jnp.transpose), {}, _H0 + "attn.c_proj", "transposed weight"),
    "heads-interleaved": ({}, lambda m, patch: patch("FlaxGPT2Attention", InterleavedHeads), {}, _H0 + "attn.c_proj", "permuted heads"),
    "q-k-swapped": ({}, lambda m, patch: patch("dot_product_attention_weights", _weights_of(lambda q, k: (k, q))), {}, _H0 + "attn.c_proj", "weights swapped"),
    "no-residual": ({}, lambda m, patch: patch("FlaxGPT2Block", WithoutResidual), {}, _H0 + "ln_2", "residual missing"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_shows_at_its_module(reference, tmp_path, monkeypatch, name):
    folder, outputs, _ = reference
    changes, seed, arguments, module, fault = FAULTS[name]
    model = flax_model(folder, **changes)
    if seed is not None:
        seed(model, lambda attribute, x: monkeypatch.setattr(port, attribute, x))
    run = jax.jit(lambda params: model(IDS, params=params, **arguments).logits)
    with parity_probe.jax.record(model, tmp_path / "cand.h5", functions=["jax.nn:gelu"]):
        run(model.params)
    assert first_difference(outputs, Recording(tmp_path / "cand.h5")) == module
    if has_compare():
        assert compare(folder, tmp_path / "cand.h5", tmp_path) == (1, (module, 0, fault))

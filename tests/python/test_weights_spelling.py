"""weights: numbers of layers are numbers however they are spelt (`stage1.block0`, `stages_1/blocks_0` for `stages.1.blocks.0`)."""
import json
import re

import numpy as np
import pytest

import program

SPELLINGS = {
    "dotted": "encoder.stages.{s}.blocks.{b}.{m}/{leaf}",
    "glued": "encoder.stage{s}.block{b}.{m}/{leaf}",
    "one of the two glued": "encoder.stage{s}.blocks.{b}.{m}/{leaf}",
    "underscores": "encoder.stage_{s}.block_{b}.{m}/{leaf}",
    "slashes": "encoder/stage{s}/block{b}/{m}/{leaf}",
    "one component": "encoder.stage{s}_block{b}.{m}/{leaf}",
    "short": "enc.s{s}.b{b}.{m}/{leaf}",
    "counted from 1": "encoder.stage{s1}.block{b1}.{m}/{leaf}",
    "counted through": "encoder.block{n}.{m}/{leaf}",
}
WORDS = {"layernorm_before": "ln1", "layernorm_after": "ln2", "mlp.fc1": "ffn.fc1", "mlp.fc2": "ffn.fc2",
         "attention.q_proj": "attn.q", "attention.k_proj": "attn.k", "attention.v_proj": "attn.v", "attention.o_proj": "attn.out"}
FIRST = "segformer.stages.1.blocks.0."
EXCHANGED = {"k and v": ("attention.k_proj.weight", "attention.v_proj.weight"), "the norms": ("layernorm_before.weight", "layernorm_after.weight")}


def model(stages=(2, 2, 1)):
    """The reference's parameters, no two alike: blocks in stages of growing width, and an embedding in front of each."""
    rng, arrays = np.random.default_rng(0), {}
    for s, blocks in enumerate(stages):
        width = 8 * (s + 1)
        shapes = {"patch_embeddings.proj": (width, 4, 3, 3), "patch_embeddings.layer_norm": (width,)}
        for b in range(blocks):
            for module in WORDS:
                rows, columns = (4 * width, width) if module == "mlp.fc1" else (width, 4 * width) if module == "mlp.fc2" else (width, width)
                shapes[f"blocks.{b}.{module}"] = (width,) if "norm" in module else (rows, columns)
        for module, shape in shapes.items():
            arrays[f"segformer.stages.{s}.{module}.weight"] = rng.standard_normal(shape).astype(np.float32)
            arrays[f"segformer.stages.{s}.{module}.bias"] = rng.standard_normal(shape[:1]).astype(np.float32)
    for leaf in ("weight", "bias", "running_mean", "running_var"):
        arrays[f"decode_head.batch_norm.{leaf}"] = rng.random(24).astype(np.float32)
    return arrays


def port_name(name, spelling):
    module, _, leaf = name.rpartition(".")
    leaf = {"running_mean": "mean", "running_var": "var"}.get(leaf, leaf)
    if leaf == "weight":
        leaf = "scale" if "norm" in module else "kernel"
    if module == "decode_head.batch_norm":
        return f"head.bn/{leaf}"
    _, _, s, *rest = module.split(".")
    if rest[0] == "patch_embeddings":
        form = re.sub(r"[._/][a-z_.]*{b1?}", "", SPELLINGS[spelling]).replace("block{n}", "in{s}")
        return form.format(s=s, s1=int(s) + 1, m="patch_embed." + {"proj": "conv", "layer_norm": "ln"}[rest[1]], leaf=leaf)
    b = int(rest[1])
    return SPELLINGS[spelling].format(s=s, b=b, s1=int(s) + 1, b1=b + 1, n=2 * int(s) + b, m=WORDS[".".join(rest[2:])], leaf=leaf)


def audited(folder, change=lambda arrays: None, rename=port_name, **how):
    """`change`: of the port's arrays, which are named as the reference's until then."""
    reference, port = model(), model()
    change(port)
    layout = {1: lambda x: x, 2: lambda x: x.T, 4: lambda x: x.transpose(2, 3, 1, 0)}
    np.savez(folder / "reference.npz", **reference)
    np.savez(folder / "port.npz", **{rename(name, **how): np.ascontiguousarray(layout[x.ndim](x)) for name, x in port.items()})
    done = program.run("weights", folder / "reference.npz", folder / "port.npz", "--json", folder / "report.json")
    ops = json.loads((folder / "report.json").read_text())["ops"]
    return done, {op["path"]: (op["candidate_path"], op["diagnosis"]) for op in ops if op["verdict"] != "pass"}


def exchange(*names):
    def change(arrays):
        arrays[names[0]], arrays[names[1]] = arrays[names[1]], arrays[names[0]]
    return change


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_an_honest_port_passes(spelling, tmp_path):
    done, faults = audited(tmp_path, spelling=spelling)
    assert (done.returncode, faults) == (0, {})
    if "{b}" not in SPELLINGS[spelling]:
        return  # other numbers: no rule carries them over
    rules = done.stdout.split(" rules:\n")[0].rsplit(" in ", 1)[1]
    assert int(rules) <= 40, done.stdout  # of 88 parameters; 24 forms


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("names", EXCHANGED.values(), ids=EXCHANGED)
def test_exchanged_parameters_of_one_block_are_found(names, spelling, tmp_path):
    a, b = (FIRST + name for name in names)
    done, faults = audited(tmp_path, exchange(a, b), spelling=spelling)
    assert done.returncode == 1 and set(faults) == {a, b}
    assert all(why.startswith("swapped: ") for _, why in faults.values())


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_bias_of_zeros_is_told_as_such(spelling, tmp_path):
    name = FIRST + "mlp.fc1.bias"
    done, faults = audited(tmp_path, lambda arrays: arrays.update({name: 0 * arrays[name]}), spelling=spelling)
    assert done.returncode == 1 and set(faults) == {name}
    assert faults[name][0] == port_name(name, spelling) and faults[name][1].startswith("zero: all zero")


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_lost_bias_is_missing(spelling, tmp_path):
    done, faults = audited(tmp_path, lambda arrays: arrays.pop(FIRST + "mlp.fc1.bias"), spelling=spelling)
    assert done.returncode == 3 and set(faults) == {FIRST + "mlp.fc1.bias"}
    assert faults[FIRST + "mlp.fc1.bias"][1].startswith("missing: ")


STATISTICS = ("decode_head.batch_norm.running_mean", "decode_head.batch_norm.running_var")
LEAVES = {"flax": ("mean", "var"), "keras": ("moving_mean", "moving_variance"), "torch": ("running_mean", "running_var")}


@pytest.mark.parametrize("leaves", LEAVES.values(), ids=LEAVES)
@pytest.mark.parametrize("module", ["decode_head.batch_norm.", "head/bn/"])
def test_exchanged_running_statistics_are_found(module, leaves, tmp_path):
    def rename(name):
        name = name.replace("running_mean", leaves[0]).replace("running_var", leaves[1]).replace("decode_head.batch_norm.", module)
        return name.replace("weight", "scale" if "norm" in name or "bn" in name else "kernel")
    assert audited(tmp_path, rename=rename)[1] == {}
    done, faults = audited(tmp_path, exchange(*STATISTICS), rename)
    assert done.returncode == 1 and set(faults) == set(STATISTICS)
    assert faults[STATISTICS[0]][1].startswith("swapped: mean and variance: ")


COLLECTIONS = {"weight": ("params", "scale"), "bias": ("params", "bias"), "running_mean": ("batch_stats", "mean"), "running_var": ("batch_stats", "var")}


def residual_network(exchanged=()):
    """({torch's name: array}, {flax's name: array}): two blocks in each of three stages; `exchanged`: leaves of one norm in the port."""
    rng, reference, port = np.random.default_rng(0), {}, {}
    for s, b, n in np.ndindex(3, 2, 2):
        width, name = 8 * (s + 1), f"layer{s + 1}.{b}."
        conv = rng.standard_normal((width, width, 3, 3)).astype(np.float32)
        reference[f"{name}conv{n + 1}.weight"], port[f"params/stage{s}_block{b}/conv_{n}/kernel"] = conv, conv.transpose(2, 3, 1, 0)
        norm = {leaf: rng.random(width).astype(np.float32) for leaf in COLLECTIONS}
        reference.update({f"{name}bn{n + 1}.{leaf}": array for leaf, array in norm.items()})
        if (s, b, n) == (1, 0, 1) and exchanged:
            norm[exchanged[0]], norm[exchanged[1]] = norm[exchanged[1]], norm[exchanged[0]]
        port.update({f"{COLLECTIONS[leaf][0]}/stage{s}_block{b}/BatchNorm_{n}/{COLLECTIONS[leaf][1]}": array for leaf, array in norm.items()})
    return reference, port


@pytest.mark.parametrize("exchanged", [(), ("running_mean", "running_var"), ("weight", "bias")], ids=lambda e: " and ".join(e) or "none")
def test_statistics_in_a_collection_of_their_own(exchanged, tmp_path):
    reference, port = residual_network(exchanged)
    np.savez(tmp_path / "reference.npz", **reference)
    np.savez(tmp_path / "port.npz", **port)
    done = program.run("weights", tmp_path / "reference.npz", tmp_path / "port.npz", "--json", tmp_path / "report.json")
    faults = {op["path"] for op in json.loads((tmp_path / "report.json").read_text())["ops"] if op["verdict"] != "pass"}
    assert faults == {f"layer2.0.bn2.{leaf}" for leaf in exchanged} and done.returncode == bool(exchanged), done.stdout

"""The sets of the zoo (scripts/zoo): which models are in them, that no two share an architecture, and that a closed one is scored only when it is named.

    python -m pytest tests/python/test_zoo_sets.py     needs torch, transformers, diffusers
"""
import functools
import importlib
import importlib.util
import re
import sys
import zlib
from collections import Counter
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]

import zoo  # noqa: E402

zoo.quiet()

from zoo import cases, catalogue, runner  # noqa: E402
from zoo.catalogue import ENTRIES, LISTED  # noqa: E402
from zoo.entry import KINDS  # noqa: E402

FORBIDDEN = ("gemma", "phi", "glm", "cohere", "deepseek", "mamba", "whisper", "swin", "convnext", "unet2dcondition", "flux", "ltx", "cogvideox", "hunyuanvideo")
FORBIDDEN_CLOSED = (*FORBIDDEN, "bert", "vit", "llama", "skyreels", "wan")   # and whatever the suite of pairs was made with: PAIRS
PAIRS = {f"transformers.models.{name}.modeling_{name}" for name in ("gpt2", "gpt_oss", "qwen3", "umt5")}
BY_NAME = ("fresh_2", "fresh_3", "fresh_4", "fresh_5", "fresh_6", "fresh_7", "fresh_8", "fresh_9", "fresh_10", "fresh_11")   # chosen by their names alone: more is asked
ELSEWHERE = ("fresh_10", "fresh_11")   # of other libraries than transformers and diffusers
ALIAS = 0.75                       # of a file's lines: more in another model's file, and it is the same model by another name


def of_set(half):
    return [e for e in ENTRIES.values() if e.half == half]


def source_of(entry):
    """The file that the model's class is written in; of other libraries the library and the class."""
    library, *_config, name = entry.model.split(":")
    return entry.model if entry.is_elsewhere else getattr(importlib.import_module(library), name).__module__


@functools.cache
def lines_of(module):
    """The file's lines of code, each with how often it stood before, without what the libraries' checks copy to every model: imports, decorators, results. The model's own name is an X."""
    text = re.sub(r'""".*?"""', "", Path(importlib.util.find_spec(module).origin).read_text(), flags=re.DOTALL)
    own = re.sub(r"^(modeling|transformer|autoencoder_kl|autoencoder|unet)_|_(transformer|2d|3d)", "", module.rpartition(".")[2]).replace("_", "")
    lines = (line.partition("#")[0].strip().replace("_", "") for line in text.splitlines())
    said = [line for line in lines if len(line) >= 12 and not line.startswith(("import", "from", "@", "return", "super().init"))]
    counts = Counter(re.sub(own, "X", line, flags=re.IGNORECASE) for line in said)
    return frozenset((line, i) for line, count in counts.items() for i in range(count))


def share_in(module, other):
    """The share of the first file's lines that are in the second one."""
    return len(lines_of(module) & lines_of(other)) / len(lines_of(module))


def test_sets_are_large_enough_and_of_every_kind():
    assert sum(len(of_set(half)) for half in zoo.HALVES) == len(ENTRIES)
    assert len(of_set("development")) + len(of_set("held_out")) >= 30 and len(of_set("fresh")) >= 14
    for half in zoo.HALVES:
        assert {e.kind for e in of_set(half)} == set(KINDS)
    for half in BY_NAME:
        counts = Counter(e.kind for e in of_set(half))
        assert 26 <= counts.total() <= 30 and counts["audio"] >= 4 and counts["diffusion"] >= 6, counts


def test_a_closed_set_is_a_folder_and_a_line():
    folders = {p.parent.name for p in Path(catalogue.__file__).parent.glob("*/__init__.py")}
    assert folders == set(zoo.CLOSED) and set(BY_NAME) <= set(zoo.CLOSED)
    for name in folders:
        files = {p.stem for p in (Path(catalogue.__file__).parent / name).glob("*.py")}
        assert files == {"__init__", *KINDS}, name
    assert {e.closed for e in LISTED} == {"", *zoo.CLOSED}


def test_no_forbidden_model_is_in_a_set():
    assert not [e.model for e in ENTRIES.values() for word in FORBIDDEN if word in e.model.lower()]
    closed = [e for e in ENTRIES.values() if e.closed]
    assert not [e.model for e in closed for word in FORBIDDEN_CLOSED if word in e.model.lower() or word in e.name]
    assert not [e.model for half in BY_NAME for e in of_set(half) for word in FORBIDDEN_CLOSED if word in source_of(e)]


def test_no_model_is_in_two_sets():
    """Neither by its name in the list, which would replace the other entry, nor by the file it is written in; nor one of the suite of pairs."""
    assert len(LISTED) == len({e.name for e in LISTED}) == len(ENTRIES)
    sources = {half: {source_of(e) for e in of_set(half)} for half in zoo.HALVES}
    found = Counter(source for members in sources.values() for source in members)
    assert not [source for source, sets in found.items() if sets > 1]
    assert not PAIRS & set().union(*(sources[name] for name in zoo.CLOSED))
    for half in BY_NAME:
        assert len(sources[half]) == len(of_set(half))


def test_other_libraries_are_many_and_named_in_their_requirements():
    assert all(e.is_elsewhere == (e.half in ELSEWHERE) for e in LISTED)
    libraries = set()
    for half in ELSEWHERE:
        counts = Counter(e.library.partition(".")[0] for e in of_set(half))
        assert len(counts) >= 8 and max(counts.values()) <= 6, counts
        libraries |= set(counts)
    lines = (ROOT / "scripts" / "zoo" / "requirements-libraries.txt").read_text().lower().replace("-", "_")
    known = {"esm": "fair_esm", "neuralop": "neuraloperator"}   # named otherwise where they are published
    assert not [name for name in libraries if f"\n{known.get(name, name).lower()}==" not in lines]


def test_aliases_are_recognised():
    def model(name):
        return f"transformers.models.{name}.modeling_{name}"
    for alias, name in (("arcee", "llama"), ("camembert", "roberta"), ("ernie", "bert"), ("flaubert", "xlm"), ("mt5", "t5")):
        assert share_in(model(alias), model(name)) > 0.9, alias
    assert share_in(model("funnel"), model("bert")) < 0.4


def test_no_model_chosen_by_name_is_another_one_renamed():
    """Nor one of those that acceptance is measured on."""
    measured = [name for name in PAIRS if name.endswith(("gpt2", "gpt_oss", "umt5"))]
    for name in ("gemma", "gemma3", "phi", "phi3", "glm", "glm4", "cohere", "deepseek_v3", "mamba", "mamba2", "whisper", "swin", "convnext"):
        measured.append(f"transformers.models.{name}.modeling_{name}")
    for name in ("flux", "ltx", "hunyuan_video", "wan", "skyreels_v2"):
        measured.append(f"diffusers.models.transformers.transformer_{name}")
    listed = {source_of(e) for e in LISTED if not e.is_elsewhere}
    for half in BY_NAME:
        for module in (source_of(e) for e in of_set(half) if not e.is_elsewhere):
            near = max((share_in(module, other), other) for other in (listed | set(measured)) - {module})
            assert near[0] < ALIAS, (module, near)


def test_a_closed_set_is_scored_only_by_its_name():
    for name in zoo.CLOSED:
        units = runner.selection(half=name)
        assert {e.name for e, _d in units} == {e.name for e in of_set(name)} and {d for _e, d in units} == {"fp32", "bf16"}
    for units in (runner.selection(), runner.selection(sample=True)):
        assert units and not [e.name for e, _d in units if e.closed]
    with pytest.raises(ValueError, match="no family is called rwkv"):
        runner.selection("rwkv")
    with pytest.raises(ValueError, match="no family is called"):
        runner.selection(of_set("fresh_2")[0].name, half="fresh")


def test_another_draw_has_other_weights_inputs_and_places(monkeypatch):
    """And a draw is the same one whenever it is made."""
    entry = ENTRIES["bert"]

    def drawn(draw):
        monkeypatch.setenv(zoo.DRAW, draw)
        model = entry.build("fp32")
        weights = torch.cat([p.flatten() for p in model.parameters()])
        return entry.seed, weights, entry.calls("fp32")[0]["input_ids"], [f.name for f in cases.faults_of(entry, "fp32", model)]
    first, other, again = drawn("0"), drawn("1"), drawn("1")
    assert len({drawn(str(n))[0] for n in range(4)}) == 4
    assert first[0] != other[0] and not torch.equal(first[1], other[1]) and not torch.equal(first[2], other[2])
    assert first[3] != other[3] and len(first[3]) == len(other[3])
    assert other[0] == again[0] and torch.equal(other[1], again[1]) and torch.equal(other[2], again[2]) and other[3] == again[3]


def test_sets_and_seeds_are_fixed_for_ever():
    """What has been scored stays what it was: the first 96 models, their sets and the seeds of their weights."""
    assert {name: ENTRIES[name].half for name in ("llama", "bert", "pixart", "unet2d")} == {
        "llama": "held_out", "bert": "development", "pixart": "held_out", "unet2d": "development"}
    scored = sorted(f"{e.name}:{e.half}:{e.seed}" for e in LISTED if e.half in ("development", "held_out", "fresh"))
    assert (len(scored), zlib.crc32(" ".join(scored).encode())) == (96, 2382255265)

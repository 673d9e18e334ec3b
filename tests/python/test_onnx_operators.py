"""Every ONNX operator that `compare model.onnx CAND` knows, over attributes and odd shapes: ONNX Runtime, which shares no code with LibTorch, is the truth."""
import json
import pathlib
import re

import pytest
import program

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")

import onnx_operators as operators  # noqa: E402
from parity_probe.engines import onnxruntime as recorder  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Where ONNX Runtime's own fp32 kernel is coarser than the judge lets a port be: its relative L2 may reach this.
COARSE = {"arithmetic": {"Asin": 2e-7}, "resizing": {"Resize": 1e-6}}
# One node of each family whose attribute the port has otherwise.
WRONG = {"arithmetic": ("Mod", dict(fmod=1)), "activations": ("Gelu", dict(approximate="tanh")), "products": ("Gemm", dict(alpha=.5)), "convolutions": ("ConvTranspose", dict(strides=[2, 2])),
         "norms": ("LayerNormalization", dict(epsilon=.5)), "reductions": ("CumSum", dict(exclusive=1)), "shapes": ("DepthToSpace", dict(mode="CRD")), "pieces": ("Pad", dict(mode="edge")),
         "indexing": ("ScatterElements", dict(reduction="add")), "pooling": ("AveragePool", dict(count_include_pad=1), "pads"), "resizing": ("Resize", dict(nearest_mode="ceil"))}


def judged(model, port, feed, folder):
    """{path: row} of the model as reference, and ONNX Runtime's run of `port` as candidate."""
    onnx.save(model, folder / "model.onnx")
    onnx.save(port, folder / "port.onnx")
    recorder.record(folder / "port.onnx", feed, folder / "port.h5", threads=1)
    run = program.run("compare", folder / "model.onnx", folder / "port.h5", "--json", folder / "report.json", "--quiet", "--no-diagnosis")
    assert run.returncode in (0, 1), run.stderr
    return {row["path"]: row for row in json.loads((folder / "report.json").read_text())["ops"]}


def agrees(row, family):
    most = COARSE.get(family, {}).get(row["path"].split("_")[1].split("[")[0], 0)
    return row["verdict"] == "pass" or (most > 0 and row["forced"] is not None and row["forced"]["rel_l2"] <= most and row["forced"]["special_mismatch"] == 0)


@pytest.mark.parametrize("family", operators.FAMILIES)
def test_a_family_agrees_with_onnx_runtime(family, tmp_path):
    model, feed = operators.model(family)
    rows = judged(model, model, feed, tmp_path)
    assert {n.name for n in model.graph.node if n.op_type == "Cast" and n.name.startswith("as_float")} <= set(rows)  # a value of each node was compared
    bad = {path: (row["verdict"], row["diagnosis"]) for path, row in rows.items() if re.match(r"\d\d_", path) and not agrees(row, family)}
    assert not bad, bad
    assert not [path for path, row in rows.items() if row["verdict"] in ("shape", "missing", "untrusted")]


@pytest.mark.parametrize("family", WRONG)
def test_another_attribute_is_found_at_its_node(family, tmp_path):
    model, feed = operators.model(family)
    kind, attributes, *needed = WRONG[family]
    place = next(n for n, c in enumerate(operators.FAMILIES[family]) if c.kind == kind and not set(attributes) & set(c.attributes) and set(needed) <= set(c.attributes))
    rows = judged(model, operators.changed(model, place, **attributes), feed, tmp_path)
    wrong = [path for path, row in rows.items() if re.match(r"\d\d_", path) and not agrees(row, family)]
    assert wrong == [f"{place:02}_{kind}"], wrong


def test_every_operator_of_the_table_is_tested():
    """The table's rows, read from the sources, are those that the families name, apart from those tested in models."""
    elsewhere = {"Constant", "ConstantOfShape", "Range", "EyeLike", "Shape", "Size", "RMSNormalization", "Swish", "CastLike", "BitwiseOr", "BitwiseXor", "BitwiseNot"}
    table = set()
    for source in (ROOT / "src/onnx/operators").glob("*.cpp"):
        table |= set(re.findall(r'\{"([A-Z]\w+)", \w+', source.read_text()))
    assert len(table) > 120 and table - {c.kind for cases in operators.FAMILIES.values() for c in cases} <= elsewhere

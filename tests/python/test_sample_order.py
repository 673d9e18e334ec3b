"""A batch whose samples lie in another order, as guidance's prompt and negative prompt may: a port's own choice where all says it, else a fault."""
import nameless
import pytest
import torch
from spread_models import IDS, channels_last, gpt2, judged, pictures

REFERENCE, NUMBERED = (lambda _, path: path), nameless.numbered


def merged(path, array):
    """Samples and tokens as one axis."""
    return array.reshape(-1, array.shape[-1]) if array.ndim == 3 else array


def exchanged(module):
    """The model with the samples of what this module returns exchanged."""
    model = gpt2()
    model.get_submodule(module).register_forward_hook(lambda module, arguments, result: result.flip(0))
    return model


def port(folder, model, ids, name=REFERENCE, layout=lambda path, array: array):
    """Its modules' results alone."""
    nameless.record(model, folder / "run.h5", {"input_ids": ids})
    nameless.rewrite(folder / "run.h5", folder / "port.h5", name, lambda path: not path.startswith("op "), layout)
    return folder / "port.h5"


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return nameless.record(gpt2(), tmp_path_factory.mktemp("reference") / "reference.h5", {"input_ids": IDS})


def said(report):
    return any("samples in another order, 1, 0" in warning for warning in report["warnings"])


@pytest.mark.parametrize("layout", [lambda path, array: array, merged], ids=["as it is", "merged"])
@pytest.mark.parametrize("name", [lambda: REFERENCE, NUMBERED], ids=["names", "numbers"])
def test_a_right_port_is_green(name, layout, reference, tmp_path):
    (tmp_path / "same.map").write_text("* = *\n")  # under the reference's names merged axes are another shape without it
    options = ("--map", tmp_path / "same.map") if (name(), layout) == (REFERENCE, merged) else ()
    report, red = judged(reference, port(tmp_path, gpt2(), IDS.flip(0), name(), layout), tmp_path, *options)
    assert report["verdict"] == "pass" and said(report), red


def test_a_fault_is_found_where_it_is(reference, tmp_path):
    wrong = gpt2()
    wrong.transformer.h[2].ln_1.eps = 1e-2
    report, red = judged(reference, port(tmp_path, wrong, IDS.flip(0)), tmp_path)
    assert said(report) and set(red) == {"transformer.h.2.ln_1"}, red
    assert "norm eps" in red["transformer.h.2.ln_1"]["diagnosis"]


@pytest.mark.parametrize("module", ["transformer.h.1.mlp", "transformer.ln_f"])
def test_an_exchange_on_the_way_is_a_fault(module, reference, tmp_path):
    report, red = judged(reference, port(tmp_path, exchanged(module), IDS), tmp_path)
    assert not said(report) and set(red) == {module}, red
    assert "slices of axis 0: 0 and 1 exchanged" in red[module]["diagnosis"]


def test_inputs_in_the_reference_s_order_make_it_a_fault(reference, tmp_path):
    """All values from the first on are exchanged; what they are computed from is not."""
    nameless.record(exchanged("transformer.drop"), tmp_path / "port.h5", {"input_ids": IDS})
    report, red = judged(reference, tmp_path / "port.h5", tmp_path)
    assert not said(report) and "transformer.drop" in red, red


@pytest.mark.parametrize("name", [lambda: REFERENCE, NUMBERED], ids=["names", "numbers"])
def test_channels_last(name, tmp_path):
    """The tokens behind many convolutions tell the order, and their results are read in it, too."""
    model, x = pictures(layers=35)
    reference = nameless.record(model, tmp_path / "reference.h5", {"x": x})
    nameless.record(model, tmp_path / "run.h5", {"x": x.flip(0)})
    nameless.rewrite(tmp_path / "run.h5", tmp_path / "port.h5", name(), lambda path: not path.startswith("op "), channels_last)
    report, red = judged(reference, tmp_path / "port.h5", tmp_path)
    assert report["verdict"] == "pass" and said(report), red

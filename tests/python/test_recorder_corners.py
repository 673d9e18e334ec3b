"""Corners of PyTorch that a recorder must leave as they are: exceptions, points, nested recordings, autograd, transforms, subclasses, compiled models."""
import pytest
import torch

from test_recorder_replay import one_thread, parity_probe, replay, same  # noqa: F401
from test_recorder_traps import Fn, ops, record


@pytest.mark.parametrize("level", ["op", "module"])
def test_exceptions_inside_the_model(tmp_path, level):
    def inner(m, x):
        torch.mm(x, torch.ones(9, 9))

    def f(m, x):
        try:
            m.inner(x)
        except RuntimeError:
            pass
        return x + 1
    _, r = record(Fn(f, inner=Fn(inner)), tmp_path / "a.h5", torch.ones(2, 2), level=level)
    assert [("error" in e) for e in r.events if e["e"] == "ret"] == [True, False]
    assert r.file.attrs["complete"] == 1 and all(e["in"] in (0, 1) for e in ops(r))


def test_an_exception_that_leaves_the_block(tmp_path):
    model = Fn(lambda m, x: torch.mm(x + 1, torch.ones(9, 9)))
    with pytest.raises(RuntimeError, match="mat1"):
        with parity_probe.record(model, tmp_path / "a.h5"):
            model(torch.ones(2, 2))
    r = replay(tmp_path / "a.h5")
    assert r.file.attrs["complete"] == 0 and "RuntimeError" in r.events[-1]["error"]
    assert torch.nn.Module.__call__ is torch.nn.Module._wrapped_call_impl


def test_fused_transformer_layer_stays_fused(tmp_path):
    """Hooks would make PyTorch leave its fused kernel, and the result would change."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    x = torch.randn(2, 5, 16)
    with torch.no_grad():
        plain = layer(x)
        out, r = record(layer, tmp_path / "a.h5", x)
    assert same(plain, out) and ops(r, "aten::_transformer_encoder_layer_fwd")


def test_points(tmp_path):
    def f(m, x):
        return parity_probe.point("middle", x * 2) + 1
    assert parity_probe.point("outside", 3) == 3
    _, r = record(Fn(f), tmp_path / "a.h5", torch.ones(2), level="module")
    (e,) = [e for e in r.events if e["e"] == "point"]
    assert (e["path"], e["call"], e["role"]) == ("middle", 0, "output") and same(r.stored(e["k"]), torch.full((2,), 2.0))


def test_two_recordings_at_once(tmp_path):
    inner = torch.nn.Linear(2, 2)
    model = Fn(lambda m, x: m.inner(x) + 1, inner=inner)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "a.h5"), parity_probe.record(inner, tmp_path / "b.h5"):
        model(torch.ones(1, 2))
    a, b = replay(tmp_path / "a.h5"), replay(tmp_path / "b.h5")
    assert [e["op"] for e in ops(a)] == [e["op"] for e in ops(b)]
    assert [e["path"] for e in a.events if e["e"] == "call"] == ["", "inner"] and [e["path"] for e in b.events if e["e"] == "call"] == [""]


def test_backward_inside_a_recording(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1))
    with parity_probe.record(model, tmp_path / "a.h5"):
        model(torch.randn(4, 3)).sum().backward()
    r = replay(tmp_path / "a.h5")
    assert ops(r, "aten::tanh_backward")


def _flex(m, x):
    from torch.nn.attention.flex_attention import flex_attention
    q = x.view(1, 1, 4, 2)
    with torch.no_grad():
        return flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score + (i - j))


def _gradient(m, x):
    return torch.func.grad(lambda w: torch.func.functional_call(m.layer, {"weight": w}, (x,)).sum())(m.layer.weight.detach())


def _checkpoint(m, x):
    from torch.utils.checkpoint import checkpoint
    return checkpoint(m.layer, x, use_reentrant=False)


OTHER = {
    "vmap": lambda: Fn(lambda m, x: torch.vmap(lambda a: a * 2 + x[0])(x)),
    "flex attention": lambda: Fn(_flex),
    "lstm": lambda: torch.nn.LSTM(2, 3, 2, bidirectional=True),
    "gru": lambda: torch.nn.GRU(2, 3, 2, dropout=0.5),
    "quantised": lambda: torch.ao.quantization.quantize_dynamic(torch.nn.Sequential(torch.nn.Linear(2, 2)), dtype=torch.qint8),
    "script": lambda: Fn(lambda m, x: m.scripted(x) + 1, scripted=torch.jit.script(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))),
    "fft": lambda: Fn(lambda m, x: torch.fft.irfft(torch.fft.rfft(x.view(-1)) * 1j)),
    "several results": lambda: Fn(lambda m, x: (x.sort(), x.topk(1), torch.linalg.svd(x), x.split(1), torch._foreach_add([x, x], 1.0))),
    "parametrised": lambda: torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2)),
    "nested": lambda: Fn(lambda m, x: torch.nested.nested_tensor([x, x[:1]]).to_padded_tensor(0.0)),
    "functional gradient": lambda: Fn(_gradient, layer=torch.nn.Linear(2, 2)),
    "checkpointed": lambda: Fn(_checkpoint, layer=torch.nn.Linear(2, 2)),
    "rrelu": lambda: Fn(lambda m, x: torch.nn.functional.rrelu(x, training=True)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("level", ["op", "module"])
@pytest.mark.parametrize("name", OTHER)
def test_other_corners_of_pytorch(tmp_path, name, level):
    torch.manual_seed(0)
    model, x = OTHER[name](), torch.randn(4, 2)
    torch.manual_seed(1)
    plain = model(x)
    torch.manual_seed(1)
    out, _ = record(model, tmp_path / "a.h5", x, level=level)
    a, b = (torch.utils._pytree.tree_leaves(y) for y in (plain, out))
    assert len(a) == len(b) and all(map(same, a, b))


def test_wrapper_subclasses_come_apart(tmp_path):
    from torch.testing._internal.two_tensor import TwoTensor
    a, b = torch.randn(2), torch.randn(2)

    def f(m, x):
        y = TwoTensor(x, x * 2) + 1
        return y.a + y.b
    plain = f(None, a)
    out, r = record(Fn(f), tmp_path / "a.h5", a)
    assert same(out, plain) and len(ops(r, "aten::add.Tensor")) == 3


def test_module_added_while_running(tmp_path):
    def f(m, x):
        if not hasattr(m, "late"):
            m.late = torch.nn.Linear(2, 2)
        return m.late(x)
    _, r = record(Fn(f), tmp_path / "a.h5", torch.randn(1, 2))
    assert [e["path"] for e in r.events if e["e"] == "call"] == ["", "late"]


def test_sparse_and_meta_tensors_do_not_stop_it(tmp_path):
    def f(m, x):
        s = x.to_sparse()
        torch.empty(3, device="meta") + 1
        return s.to_dense() + torch.sparse.mm(s, x)
    out, _ = None, None
    model, x = Fn(f), torch.eye(3)
    with parity_probe.record(model, tmp_path / "a.h5"):
        out = model(x)
    assert same(out, f(None, x))


def counting_backend():
    compiled = []

    def backend(graph, inputs):
        compiled.append(graph)
        return graph.forward
    return backend, compiled


def test_compiled_functions_and_models_are_recorded_eagerly(tmp_path):
    backend, compiled = counting_backend()
    g = torch.compile(lambda x: torch.sin(x) * 2, backend=backend)
    inner = torch.nn.Linear(2, 2)
    model = Fn(lambda m, x: g(m.layer(x)), layer=torch.compile(inner, backend=backend))
    wrapped = torch.compile(model, backend=backend)
    x = torch.ones(1, 2)
    with torch.no_grad():
        plain = wrapped(x)
        before = len(compiled)
        assert before > 0
        with parity_probe.record(wrapped, tmp_path / "a.h5"):
            out = wrapped(x)
            torch.compile(lambda x: x + 1, backend=backend)(out)  # compiled for the first time inside
        assert len(compiled) == before
        r = replay(tmp_path / "a.h5")
        torch.compile(lambda x: x + 1, backend=backend)(x)
        assert len(compiled) > before  # and afterwards compilation is as it was
    assert same(plain, out)
    assert [(e["path"], e["class"]) for e in r.events if e["e"] == "call"] == [("", "Fn"), ("layer", "Linear")]
    assert set(r.file["weights"]) == {"layer.weight", "layer.bias"} and r.file.attrs["model"] == "Fn"


def test_model_compiled_in_place(tmp_path):
    backend, compiled = counting_backend()
    model = torch.nn.Sequential(torch.nn.Linear(2, 2))
    model.compile(backend=backend)
    _, r = record(model, tmp_path / "a.h5", torch.ones(1, 2))
    assert not compiled and [e["path"] for e in r.events if e["e"] == "call"] == ["", "0"]


def test_what_is_indexed_has_as_many_elements_as_the_indices(tmp_path):
    """Whole numbers say which, a mask says how many: only there is the recorded result of integers taken, and any result stored."""
    def f(m, x):
        order = x.topk(3).indices
        return torch.arange(6)[order], torch.arange(6)[x > 0], 2 * x[order], 2 * x[x > 0]
    _, r = record(Fn(f), tmp_path / "a.h5", torch.randn(6), level="module")
    taken = ops(r, "aten::index.Tensor")
    assert [op.get("opaque") for op in taken] == [None, "data-dependent", None, None]
    assert ["k" in op["out"][0] for op in taken] == [False, True, False, True]

"""A bf16 model's port under numbers, channels last, that computes each op in fp32 and rounds once: most of its values are the reference's to the last bit, the others are off by a rounding, which is no fault. Behind a gross one everything is paired."""
import nameless
import parity_probe
import pytest
import spread_models
import torch
import torch.nn.functional as F
from torch import nn

X = torch.randn(1, 3, 24, 20, generator=torch.Generator().manual_seed(5)).bfloat16()


def vae():
    return spread_models.vae(channels=(32, 64), groups=8, size=32).bfloat16()


def convolution(module, x):
    x = F.pad(x.float(), [n for n in reversed(module.padding) for _ in range(2)], mode=getattr(module, "edge", "constant"))
    return F.conv2d(x, module.weight.float(), module.bias.float(), module.stride).bfloat16()


def linear(module, x):
    return F.linear(x.float(), module.weight.float(), module.bias.float()).bfloat16()


def group_norm(module, x):
    return F.group_norm(x.double(), module.num_groups, module.weight.double(), module.bias.double(), module.eps).bfloat16()


def port_of(model):
    """`model` with arithmetic of its own."""
    for module in model.modules():
        for kind, forward in ((nn.Conv2d, convolution), (nn.Linear, linear), (nn.GroupNorm, group_norm)):
            if isinstance(module, kind):
                module.forward = forward.__get__(module)
    return model


def padded(convolutions):
    for module in convolutions:
        module.edge = "replicate"


def padded_everywhere(model):
    padded(module for module in model.modules() if isinstance(module, nn.Conv2d) and module.padding != (0, 0))


def exchanged(model):
    a, b = model.encoder.down_blocks[1].resnets[0].conv2.weight, model.encoder.mid_block.resnets[0].conv1.weight
    a.data, b.data = b.data.clone(), a.data.clone()


def bilinear(model):
    up = model.decoder.up_blocks[0].upsamplers[0]
    up.forward = lambda x, *_, **__: up.conv(F.interpolate(x.float(), scale_factor=2., mode="bilinear").bfloat16())


def queries_scaled(model):
    attention = model.encoder.mid_block.attentions[0]
    plain = F.scaled_dot_product_attention

    def scaled(*args, **kwargs):
        F.scaled_dot_product_attention = lambda q, k, v, **_: plain(q.float() * 3, k.float(), v.float()).bfloat16()
        try:
            return type(attention).forward(attention, *args, **kwargs)
        finally:
            F.scaled_dot_product_attention = plain

    attention.forward = scaled


FAULTS = {"one convolution's padding": (lambda m: padded([m.decoder.up_blocks[0].resnets[0].conv1]), "decoder.up_blocks.0.resnets.0.conv1"),
          "all paddings": (padded_everywhere, "encoder.conv_in"),
          "weights of two convolutions": (exchanged, "encoder.down_blocks.1.resnets.0.conv2"),
          "bilinear for nearest": (bilinear, "decoder.up_blocks.0.upsamplers.0.conv"),
          "attention's scale": (queries_scaled, "encoder.mid_block.attentions.0.to_out.0")}


def written(model, file):
    """The modules' results in their order, each value once, as t0, t1, … and channels last. Returns {name: path}."""
    results, truth = [], {}
    for path, module in model.named_modules():
        if path:
            module.register_forward_hook(lambda _, __, out, path=path: results.append((path, out)) if isinstance(out, torch.Tensor) else None)
    with torch.no_grad(), parity_probe.Writer(file) as writer:
        model(X)
        for i, (path, value) in enumerate(results):
            if not any(value.shape == other.shape and torch.equal(value, other) for _, other in results[:i]):
                name = f"t{len(truth)}"
                truth[name] = path
                writer.write(name, (value.permute(0, 2, 3, 1) if value.ndim == 4 else value).float().contiguous())
    return truth


@pytest.mark.parametrize("fault", FAULTS)
def test_all_is_paired_behind_a_gross_fault(fault, tmp_path):
    change, place = FAULTS[fault]
    reference = nameless.record(vae(), tmp_path / "reference.h5", {"sample": X})
    port = port_of(vae())
    change(port)
    truth = written(port, tmp_path / "port.h5")
    report, rows = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    assert report["first_divergence"]["path"] == place, report["first_divergence"]
    assert {name: row["path"].split("/")[0] for name, row in rows.items()}.items() <= truth.items()
    assert len(rows) > .95 * len(truth) and report["counts"]["missing"] == 0, sorted(set(truth) - set(rows))


def test_a_right_one_is_green(tmp_path):
    reference = nameless.record(vae(), tmp_path / "reference.h5", {"sample": X})
    truth = written(port_of(vae()), tmp_path / "port.h5")
    report, rows = nameless.compare(reference, tmp_path / "port.h5", tmp_path / "report")
    assert report["verdict"] == "pass" and rows.keys() == truth.keys(), report["counts"]

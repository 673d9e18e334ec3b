"""Rows of a batch that are nearly alike: a few elements of each tensor do not tell in which order its axes are, all of them do."""
import numpy as np
import pytest
import torch
import transformers
from spread_models import judged

import parity_probe

STAGES = ["levit.patch_embeddings", "levit.encoder.stages.0", "levit.encoder.stages.1", "levit.encoder.stages.2", "classifier.linear"]


def levit():
    """Attention over few tokens, weights so small that it gives all images nearly the same."""
    model = transformers.LevitForImageClassification(transformers.LevitConfig(image_size=96, hidden_sizes=[32, 48, 64], num_attention_heads=[2, 3, 4], depths=[1, 1, 1],
                                                                             key_dim=[8, 8, 8], num_labels=11)).eval()
    g = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
                module.running_mean.copy_(.3 * torch.randn(module.running_mean.shape, generator=g))
                module.running_var.copy_(.3 + torch.rand(module.running_var.shape, generator=g))
                module.weight.copy_(1 + .25 * torch.randn(module.weight.shape, generator=g)), module.bias.copy_(.2 * torch.randn(module.bias.shape, generator=g))
        for weight in model.parameters():
            if weight.dim() > 1:
                weight.copy_(torch.randn(weight.shape, generator=g) * .6 / weight[0].numel() ** .5)
    return model


def both(folder, seed):
    """(reference in bf16, port): the port in fp32, five stages under names of its own."""
    image, model = torch.randn(2, 3, 96, 96, generator=torch.Generator().manual_seed(seed)).bfloat16(), levit().bfloat16()
    with torch.no_grad(), parity_probe.record(model, folder / "reference.h5"):
        model(image)
    wide = model.float()
    with torch.no_grad(), parity_probe.Writer(folder / "port.h5") as writer:
        for i, path in enumerate(STAGES):
            def write(module, inputs, out, i=i):
                writer.write(f"st{i}", np.ascontiguousarray(out.numpy()))
            wide.get_submodule(path).register_forward_hook(write)
        wide(image.float())
    return folder / "reference.h5", folder / "port.h5"


@pytest.mark.parametrize("seed", [4, 5])
def test_tensors_of_the_reference_s_shape_are_read_as_they_are(seed, tmp_path):
    reference, port = both(tmp_path, seed)
    report, red = judged(reference, port, tmp_path, "--save-map", tmp_path / "pairs.map")
    rules = [line for line in (tmp_path / "pairs.map").read_text().splitlines() if " = st" in line and " = st0" not in line]  # st0 may be the value before it is flattened
    assert len(rules) == 4 and not any("perm(" in rule for rule in rules), rules
    assert all(op["gate"] == "dtype_path" for op in red.values()), red  # fp32 for bf16, and nothing else


def test_an_order_of_axes_is_read_and_said(tmp_path):
    """Of rows that are not alike, features before batch and tokens."""
    torch.manual_seed(0)
    model, x = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(48, 48), torch.nn.GELU()) for _ in range(4))), torch.randn(2, 9, 48)
    with torch.no_grad(), parity_probe.record(model, tmp_path / "reference.h5"):
        model(x)
    with torch.no_grad(), parity_probe.Writer(tmp_path / "port.h5") as writer:
        for i, layer in enumerate(model):
            x = layer(x)
            writer.write(f"st{i}", np.ascontiguousarray(x.numpy().transpose(2, 0, 1)))
    report, red = judged(tmp_path / "reference.h5", tmp_path / "port.h5", tmp_path, "--save-map", tmp_path / "pairs.map")
    assert report["verdict"] == "pass" and "perm(1,2,0)" in (tmp_path / "pairs.map").read_text(), red
    assert any("are read with their axes in another order, by content (st0 as perm(1,2,0))" in warning for warning in report["warnings"]), report["warnings"]

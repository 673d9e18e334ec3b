"""Records one side of a case: record.py CASE PACKAGE OUT.h5 [patched], the last for the version with the case's own fix put in. Run by run.py in the environment of one package version (PYTHONPATH); writes OUT.h5.

Both sides build the same tiny model from the same seed; every parameter is then drawn from the seed of its name, so that two versions of a package hold
equal weights whatever order they create them in.
"""
import importlib
import math
import sys
import types
import zlib


def without_version_pins():
    """transformers refuses to be imported beside another tokenizers than its own, which no case uses."""
    unchecked = types.ModuleType("transformers.dependency_versions_check")
    unchecked.dep_version_check = lambda *_: None
    sys.modules["transformers.dependency_versions_check"] = unchecked


def hide(names):
    """Makes packages of .venv-models unimportable that are too new for the version under test and that the case does not use."""
    for name in names:
        sys.modules[name] = None


def spread(model, rename=lambda name: name):
    """Draws every parameter from the seed of its name: matrices at their fan-in, gains around 1, everything else around 0, all of them different."""
    import torch
    with torch.no_grad():
        for own, value in model.named_parameters():
            name = rename(own)
            random = torch.Generator().manual_seed(zlib.crc32(name.encode()))
            noise = torch.randn(value.shape, generator=random)
            if value.numel() > max(value.shape, default=1):
                value.copy_(noise / math.sqrt(value[0].numel()) * 1.5)
            elif name.endswith("weight") or "scale" in name:
                value.copy_(1 + 0.3 * noise)
            else:
                value.copy_(0.2 * noise)
    return model


def main(name, package, out, patched=False):
    without_version_pins()
    if "diffusers" in package:
        hide(["transformers", "accelerate"])
    import torch
    import parity_probe
    torch.manual_seed(0)
    case = importlib.import_module(f"models.{name}")
    if patched:
        case.patch()
    model, calls = case.build()
    spread(model, getattr(case, "rename", lambda name: name)).eval()
    with torch.no_grad(), parity_probe.record(model, out, level=getattr(case, "level", "op")):
        for arguments in calls:
            model(**arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])

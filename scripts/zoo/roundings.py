"""Where a run rounds once more than another: F.linear on a strided input is mm and add, which rounds the product to the model's dtype before its bias is
added; on others it is addmm, which rounds once."""
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import elsewhere, produce

_PRODUCTS = {torch.ops.aten.mm.default, torch.ops.aten.bmm.default}


class _Products(TorchDispatchMode):
    """Paths of the linear layers with a bias in which a plain product in half width runs. `inside`: the layers being called, innermost last."""

    def __init__(self):
        super().__init__()
        self.inside, self.found = [], set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if self.inside and func in _PRODUCTS and args[0].dtype in (torch.bfloat16, torch.float16):
            self.found.add(self.inside[-1])
        return func(*args, **(kwargs or {}))


def before_bias(entry, dtype, change=None, plain=None):
    """Paths of the linear layers whose product is rounded before its bias is added, in one run under the change; in a process of its own where that is one of the environment."""
    if elsewhere.lies(change):
        return elsewhere.asked("before_bias", entry, dtype, change)
    products = _Products()

    def listen(model):
        handles = []
        for path, module in model.named_modules():
            if isinstance(module, torch.nn.Linear) and module.bias is not None:
                handles.append(module.register_forward_pre_hook(lambda _m, _args, path=path: products.inside.append(path)))
                handles.append(module.register_forward_hook(lambda _m, _args, _result: products.inside.pop() and None))
        try:
            with products:
                change.listen(entry, model, dtype, plain) if change and change.listen else entry.run(model, dtype)
        finally:
            for handle in handles:
                handle.remove()
    produce.run(entry, dtype, listen, None, change)
    return products.found

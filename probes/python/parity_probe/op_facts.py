"""What an op's schema and tags say, looked up once per op: its name, which arguments it writes to, whether replay can execute it."""
import torch

_UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided", "empty_quantized", "resize_", "resize", "resize_as_"}
# Their schemas are silent about the running statistics they update when `training` is true.
_SILENT_WRITES = {"native_batch_norm": (3, 4), "cudnn_batch_norm": (3, 4), "miopen_batch_norm": (3, 4)}
# Results that hold scratch memory or generator states: whatever was there before, so no value to store or compare. {op: positions}
_SCRATCH = {"mkldnn_rnn_layer": (3,), "_cudnn_rnn": (3, 4), "_scaled_dot_product_flash_attention": (6, 7, 8), "_scaled_dot_product_cudnn_attention": (6, 7, 8),
            "_scaled_dot_product_efficient_attention": (2, 3), "_flash_attention_forward": (2, 3, 4), "_efficient_attention_forward": (2, 3)}
_BACKEND_KEYS = {"cpu": "CPU", "cuda": "CUDA", "mps": "MPS", "xpu": "XPU", "meta": "Meta"}


class OpFacts:
    """Facts about one OpOverload (or higher-order operator, of which little is known)."""

    def __init__(self, op):
        schema = getattr(op, "_schema", None)
        self.op, self.known = op, schema is not None
        self.name = op.name() if self.known else f"higher_order::{op.name()}"
        self.namespace, _, self.base = (op.namespace, "", op._opname) if self.known else ("higher_order", "", "")
        self.arguments = schema.arguments if self.known else []
        self.positions = {a.name: i for i, a in enumerate(self.arguments)}
        self.writes = [(i, a.name) for i, a in enumerate(self.arguments) if a.alias_info is not None and a.alias_info.is_write]
        tags = op.tags if self.known else []
        self.random = torch.Tag.nondeterministic_seeded in tags
        self.dynamic = torch.Tag.dynamic_output_shape in tags
        self.native = self.namespace in ("aten", "prims")
        self.uninitialised = self.native and self.base in _UNINITIALISED
        self.scratch = _SCRATCH.get(self.base, ()) if self.native else ()
        self.as_strided = self.native and self.base.startswith("as_strided") and self.base in ("as_strided", "as_strided_")
        self.reads = not (self.known and any(r.alias_info is not None and not r.alias_info.is_write for r in schema.returns))
        self._own_kernel = {}

    def argument(self, name, args, kwargs):
        """The value given for argument `name`, its default when it was left out, None when there is no such argument."""
        i = self.positions.get(name)
        if i is None:
            return None
        return args[i] if i < len(args) else kwargs.get(name, self.arguments[i].default_value if self.arguments[i].has_default_value() else None)

    def written(self, args, kwargs):
        """The tensors this call writes to, lists opened up."""
        found = [args[i] if i < len(args) else kwargs.get(name) for i, name in self.writes]
        silent = _SILENT_WRITES.get(self.base) if self.native else None
        if silent and (self.argument("training", args, kwargs) or self.argument("train", args, kwargs)):
            found += [args[i] for i in silent if i < len(args)]
        return [t for x in found for t in (x if isinstance(x, (list, tuple)) else (x,)) if isinstance(t, torch.Tensor)]

    def composite(self, args):
        """True when this is a composite op that PyTorch took apart had autograd been on: inference mode lets it through whole, and a program should not
        depend on that. One with a kernel of its own for the device stays whole."""
        if not self.known or not self.native:
            return False
        device = next((t.device.type for x in args for t in (x if isinstance(x, (list, tuple)) else (x,)) if isinstance(t, torch.Tensor)), "cpu")
        if device not in self._own_kernel:
            has = torch._C._dispatch_has_kernel_for_dispatch_key
            self._own_kernel[device] = not has(self.op.name(), "CompositeImplicitAutograd") or has(self.op.name(), _BACKEND_KEYS.get(device, "PrivateUse1"))
        return not self._own_kernel[device]

    def opaque(self, args, kwargs, outputs):
        """Why replay cannot compute this call's results: "custom", "random", "data-dependent", "uninitialised"; None when it can."""
        if not self.native:
            return "custom"
        if self.uninitialised:
            return "uninitialised"
        if self.random and self._draws(args, kwargs):
            return "random"
        # How many rows nonzero or unique find would change under other roundings; which floats a mask picks is computed like any op.
        if self.sized_by_values(args, kwargs) and outputs and not any(t.is_floating_point() or t.is_complex() for t in outputs):
            return "data-dependent"
        return None

    def sized_by_values(self, args, kwargs):
        """Of what is indexed, a mask's values say how many elements are taken; whole numbers only say which."""
        if self.base != "index":
            return self.dynamic
        return any(t is not None and t.dtype in (torch.bool, torch.uint8) for t in self.argument("indices", args, kwargs))

    def _draws(self, args, kwargs):
        # Attention carries the tag for its dropout: without one it is as deterministic as any op.
        for name in ("dropout_p", "p", "dropout"):
            if name in self.positions and self.argument(name, args, kwargs) == 0:
                return False
        return not any(name in self.positions and self.argument(name, args, kwargs) is False for name in ("train", "training"))

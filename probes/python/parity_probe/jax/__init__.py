"""Records what a JAX port computed: flax modules (nnx, linen) and plain functions, unmodified, eager or jitted, as a parity-dump/1 file.

    with parity_probe.jax.record(model, "cand.h5", functions=["port.layers:rope_apply"]):
        model(x)                                   # or jax.jit(model.apply)(variables, x), nnx.jit(f)(model, x), a FlaxPreTrainedModel, ...

Paths are module paths as in PyTorch: `blocks.0.attn.q`; elements of lists and dicts, plain or nnx.List / nnx.Dict, follow with a dot. The model itself
is "". A named function is `<path of the module it is called in>/<function>.<n>`, its n-th call there; outside any module `~/<function>.<n>`. Several outputs
are `path`, `path[1]`, ...; inputs carry the same path with role "input"; parameters, variables of other collections and plain arrays kept by modules have
role "weight" and their path. A path that is computed again (the model called twice, an iteration of a scan over layers) is recorded as its next call. Under
vmap a value has the batch axis.

Jitted code: while the block runs nothing is taken from JAX's caches, so that functions compiled before are traced anew (compilation is paid once more; after
the block the old compiled functions are used again). A trace carries marks which compile to nothing: the caller gets the result of the same program as without
a recording. The values come from a second run of it which has the marked values as further outputs; should that second run's results differ from the first's
in any bit (XLA then fused otherwise), a note in the file says in how many elements. So a recorded jitted function computes twice, and host callbacks of the
model's own are called twice.
The recorded values of one jitted call are in memory at once, on one device; `record` around an eager call writes as it goes.
What JAX does not trace cannot be seen: a function compiled ahead of time (`.lower().compile()`), nor modules called by other methods than `__call__`
(name those as functions: "port.layers:Attention.decode"); what runs inside shard_map or pmap is not looked into, and a note in the file says so.
A block in which nothing was seen raises parity_probe.Error.
"""
from .recorder import Recorder

__all__ = ["record"]


def record(target, path, functions=(), primitives=False, weights=None, config=None, level="module", mesh=None):
    """Context manager: records the calls of `target` inside the block to the HDF5 file `path`.

    target      nnx.Module, linen.Module (bound or not; every top-level `apply` of a module of its class counts), transformers' FlaxPreTrainedModel,
                a Python function (jitted or not; its path is ""), or None when `functions` are all there is to record.
    functions   names "package.module:function" (or "...:Class.method"), or the functions themselves: their inputs and outputs, wherever they are called from.
    primitives  also every JAX primitive, as `<module path>/<primitive>.<n>`. Values then come from a program in which less is fused.
    weights     a tree of arrays (dicts, lists) recorded with role "weight" by its keys, for functions whose parameters are arguments.
    config      a mapping for the file's provenance; default: the model's own configuration.
    mesh        a jax.sharding.Mesh: what each of its devices holds goes into a file of its own, path "cand.h5" into cand.rank0.h5, cand.rank1.h5, ... (parity-check
                compare REF 'cand.rank*.h5'). Jitted code is then recorded where it ran, on all devices.
    level       "module" stores values; "sketch" a few kB of each instead (parity_probe.sketch), "stats" statistics alone.

    Results stay bitwise what they are without recording. One recording at a time, of the thread that entered the block. Raises TypeError (no such target),
    parity_probe.Error (path cannot be written, writing failed, a name leads to no function, nothing was called).
    """
    return Recorder(target, path, functions, primitives, weights, config, level, mesh)

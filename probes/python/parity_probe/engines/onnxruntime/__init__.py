"""Records what ONNX Runtime computes: every value of a model's graph, as it stands or as the runtime optimised it.

    from parity_probe.engines import onnxruntime
    onnxruntime.record("model.onnx", {"input_ids": ids}, "cand.h5")                          # op by op, nothing optimised
    onnxruntime.record("model.onnx", {"input_ids": ids}, "cand.h5", optimisation="all")      # the graph that the runtime makes of it

or `python -m parity_probe.engines.onnxruntime model.onnx --inputs inputs.npz -o cand.h5`. Needs the packages onnxruntime and onnx.

Paths are those of the PyTorch modules where the exporter left them in the graph (torch.onnx.export does): a module's output has the module's path, any other value
`<module path>/<ONNX operator>.<n>`. Without them every value is `<node's name>`, or `<operator>.<n>`. Inputs have role "input"; initializers role "weight".
"""
from .recorder import record

__all__ = ["record"]

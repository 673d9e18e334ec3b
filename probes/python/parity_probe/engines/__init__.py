"""Recorders of inference engines, which have no torch.nn.Module: each runs the installed engine as it is and writes what it computes under the engine's own names.

    parity_probe.engines.llama_cpp      libllama: every tensor of its evaluation callback
    parity_probe.engines.onnxruntime    every value of an ONNX model's graph, as it stands or optimised
    parity_probe.engines.torch_programs torch.export and torch.compile: the values of their graphs, and the compiled program's results

Each imports its engine when it is used. probes/engines/README.md has examples to copy; maps of names lie in probes/maps.
"""

"""Records what llama.cpp computes, from an installed libllama, without compiling anything:

    from parity_probe.engines import llama_cpp
    llama_cpp.record("model.gguf", [1, 15, 27, 3], "cand.h5")

or `python -m parity_probe.engines.llama_cpp model.gguf --tokens 1,15,27,3 -o cand.h5`. libllama comes with a wheel (`pip install xllamacpp`, or
llama-cpp-python), or is named by `library=` / `PARITY_LLAMA`. A program that links llama.cpp itself uses probes/engines/llama_cpp/parity_llama.hpp.

Every tensor that the evaluation callback sees is written under ggml's own name (`Qcur-0`, `ffn_inp-1`, `result_output`), its axes in numpy's order (ggml's
reversed), its dtype kept. A name that is computed again in one evaluation (`Qcur-0`: the product, after RoPE) is the next call of that path, and so is
everything in a later evaluation. Values are taken between ops, so that the engine runs op by op and fuses none while it is recorded.
"""
from .recorder import record

__all__ = ["record"]

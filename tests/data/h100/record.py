"""Records the embedded models' runs on a GPU, and language models' on that machine's CPU (other versions of transformers fill them otherwise): the files beside this one, from an H100 (PyTorch 2.11, CUDA 13,
transformers 5.17). Run from the repository's root, where there is a GPU.

    PYTHONPATH=probes/python:scripts:tests/python python tests/data/h100/record.py
"""
import pathlib

import test_on_gpu
import torch

HERE = pathlib.Path(__file__).resolve().parent


def main():
    for name, precision in (("skyreels-v2-t2v", "fp32"), ("diffusers-wan-t2v", "bf16"), ("transformers-gpt2", "bf16"), ("transformers-gpt-oss", "bf16")):
        test_on_gpu.record(HERE / f"{name}.{precision}.h5", name, precision, "cuda")
    for name, precision in (("transformers-gpt2", "bf16"), ("transformers-gpt2", "fp32"), ("transformers-gpt-oss", "bf16")):
        test_on_gpu.record(HERE / f"{name}.{precision}.cpu.h5", name, precision, "cpu")
    oss = "transformers-gpt-oss"
    test_on_gpu.record(HERE / f"{oss}.bf16.another-eps.h5", oss, "bf16", "cuda", test_on_gpu.another_eps(oss))
    torch.backends.cuda.matmul.allow_tf32 = True
    test_on_gpu.record(HERE / "transformers-gpt2.fp32.tf32.h5", "transformers-gpt2", "fp32", "cuda")


if __name__ == "__main__":
    main()

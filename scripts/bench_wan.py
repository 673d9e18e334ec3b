#!/usr/bin/env python3
"""The C++ transformer beside PyTorch eager on the same configuration, in turn, in one run: seconds, peak memory, ratio; and what recording costs.

    bench_wan.py [--latent 3,68,120] [--rounds 1] [--layers 30] [--record 1,16,32]

Needs the build (scripts/parity-check) and the Python of scripts/test (.venv-models). Each side runs in its own process; PyTorch's is the diffusers model,
as its users load it. `--record` adds: one forward recorded at level `module`, time and file size.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

EAGER = """
import json, resource, sys, time
import torch, diffusers
torch.set_num_threads(2); torch.set_grad_enabled(False); torch.manual_seed(0)
a = json.loads(sys.argv[1])
cls = diffusers.SkyReelsV2Transformer3DModel
torch.set_default_dtype(torch.bfloat16)
model = cls(num_attention_heads=12, attention_head_dim=128, in_channels=36, out_channels=16, text_dim=4096, ffn_dim=8960, num_layers=a["layers"], image_dim=1280,
            added_kv_proj_dim=1536).eval()
torch.set_default_dtype(torch.float32)
for name, p in model.named_parameters():
    if any(k in name for k in cls._keep_in_fp32_modules): p.data = p.data.float()
f, h, w = a["latent"]
inputs = dict(hidden_states=torch.randn(1, 36, f, h, w, dtype=torch.bfloat16), timestep=torch.tensor([998]),
              encoder_hidden_states=torch.randn(1, 512, 4096, dtype=torch.bfloat16), encoder_hidden_states_image=torch.randn(1, 257, 1280, dtype=torch.bfloat16), return_dict=False)
seconds = []
for _ in range(a["forwards"]):
    t = time.perf_counter(); model(**inputs); seconds.append(time.perf_counter() - t)
out = dict(seconds=seconds, peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)
if a["record"]:
    import os, parity_probe
    t = time.perf_counter()
    with parity_probe.record(model, a["record"], level="module"): model(**inputs)
    out.update(record_seconds=time.perf_counter() - t, record_bytes=os.path.getsize(a["record"]))
print(json.dumps(out))
"""


def eager(python, **arguments):
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "probes/python"))
    done = subprocess.run([python, "-c", EAGER, json.dumps(arguments)], env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"bench_wan.py: PyTorch's side failed: {done.stderr.strip().splitlines()[-1]}")
    return json.loads(done.stdout.splitlines()[-1])


def ours(binary, folder, latent, layers, repeats):
    config = dict(model_type="i2v", dim=1536, ffn_dim=8960, num_heads=12, num_layers=layers, in_dim=36, out_dim=16, freq_dim=256, text_dim=4096, text_len=512, image_dim=1280,
                  image_tokens=257, eps=1e-6, qk_norm=True, cross_attn_norm=True)
    (folder / "config.json").write_text(json.dumps(config))
    subprocess.run([binary, "bench", "wan", "--quiet", "--threads", "2", "--dtype-path", "dsky", "--config", folder / "config.json", "--latent", ",".join(map(str, latent)),
                    "--repeats", str(repeats), "--json", folder / "bench.json"], check=True)
    found = json.loads((folder / "bench.json").read_text())
    return dict(seconds=[found["first_seconds"], *found["seconds"]], peak_bytes=found["peak_bytes"], tokens=found["tokens"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--latent", default="3,68,120")
    parser.add_argument("--layers", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--forwards", type=int, default=1, help="per process; the best is quoted")
    parser.add_argument("--record", action="store_true", help="also record one forward at level module")
    parser.add_argument("--binary", default=ROOT / "build/release/parity-check")
    parser.add_argument("--python", default=ROOT / ".venv-models/bin/python")
    a = parser.parse_args()
    latent = [int(n) for n in a.latent.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(a.rounds):
            b = ours(a.binary, Path(folder), latent, a.layers, a.forwards - 1)
            e = eager(str(a.python), latent=latent, layers=a.layers, forwards=a.forwards, record=os.path.join(folder, "r.h5") if a.record else "")
            print(f"{b['tokens']} tokens, {a.layers} layers, bf16, 2 threads: PyTorch eager {min(e['seconds']):.2f} s, {e['peak_bytes'] / 2**30:.2f} GiB; "
                  f"parity-check {min(b['seconds']):.2f} s, {b['peak_bytes'] / 2**30:.2f} GiB; {min(e['seconds']) / min(b['seconds']):.2f} x as fast", flush=True)
            if a.record:
                print(f"recording one forward at level module: {e['record_seconds']:.2f} s = {e['record_seconds'] / min(e['seconds']):.2f} x the forward, {e['record_bytes'] / 2**30:.2f} GiB")


if __name__ == "__main__":
    main()

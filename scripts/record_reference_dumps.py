#!/usr/bin/env python3
"""Records the reference dumps that parity-check embeds, and keeps their manifest.

    record_reference_dumps.py                 record all of them into reference_dumps/ and rewrite MANIFEST.json
    record_reference_dumps.py 'wan-*.bf16'    only those (the manifest keeps the others)
    record_reference_dumps.py --check         are the files those of the manifest? (sha256; needs no torch)
    record_reference_dumps.py --again         record into a temporary folder: does it give the same tensors and program?

Recording needs reference_dumps/requirements.txt. Same seed, same machine type: same tensors; another CPU may round differently.
"""
import argparse
import fnmatch
import hashlib
import importlib.metadata
import json
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "reference_dumps"
MANIFEST = FOLDER / "MANIFEST.json"
LIMIT = 24_000_000   # bytes of all dumps together: they live in the repository
THREADS = 2
CODE = {"diffusers": "diffusers' code", "transformers": "transformers' code",
        "reference_models": "our transcription of the original"}   # whose forward ran (src/jobs/sides.cpp)
LIBRARIES = {"diffusers": ("torch", "diffusers", "accelerate", "numpy", "h5py"), "transformers": ("torch", "transformers", "numpy", "h5py")}


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def content_sha256(path):
    """Of all tensors' bits and the program: equal for two recordings of the same computation, unlike the file (its provenance has a time)."""
    import h5py

    digest = hashlib.sha256()
    with h5py.File(path, "r") as f:
        for key in sorted(f["values"]):
            dataset = f["values"][key]
            digest.update(f"{key} {dataset.attrs['dtype']} {dataset.shape} ".encode())
            offset, size = dataset.id.get_offset(), dataset.id.get_storage_size()
            if size:
                with open(path, "rb") as raw:
                    raw.seek(offset)
                    digest.update(raw.read(size))
        digest.update(f["trace/events"][...].tobytes())
    return digest.hexdigest()


def jobs(patterns):
    from reference_models.recipes import PRECISIONS, RECIPES

    every = [(recipe, precision) for recipe in RECIPES for precision in PRECISIONS]
    chosen = [job for job in every if any(fnmatch.fnmatch(f"{job[0].name}.{job[1]}", p) for p in patterns)]
    if not chosen:
        raise SystemExit(f"no dump is called {' or '.join(patterns)}; there are:\n  "
                         + "\n  ".join(f"{recipe.name}.{precision}" for recipe, precision in every))
    return chosen


def record(recipe, precision, path):
    """Runs one recipe under the recorder; returns the model and its inputs."""
    import parity_probe
    import torch
    from reference_models.recipes import build

    torch.set_num_threads(THREADS)
    torch.manual_seed(recipe.seed)
    model, inputs = build(recipe, precision)
    with torch.no_grad(), parity_probe.record(model, str(path), level=recipe.level):
        model(**inputs)
    return model, inputs


def entry(recipe, precision, path, model, inputs):
    import torch

    package = type(model).__module__.split(".")[0]
    described = {name: f"{str(v.dtype).split('.')[1]} {list(v.shape)}" if torch.is_tensor(v) else v for name, v in inputs.items()}
    return {
        "file": path.name, "bytes": path.stat().st_size, "sha256": sha256(path), "content_sha256": content_sha256(path),
        "command": f"scripts/record_reference_dumps.py {recipe.name}.{precision}",
        "code": CODE[package], "class": f"{package}.{type(model).__name__}", "precision": precision,
        "dtype_path": recipe.dtype_path, "level": recipe.level, "seed": recipe.seed, "threads": THREADS,
        "config": recipe.config, "inputs": described,
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES.get(package, LIBRARIES["diffusers"])}, "python": sys.version.split()[0],
    }


def read_manifest():
    return json.loads(MANIFEST.read_text())["dumps"] if MANIFEST.exists() else []


def write_manifest(entries):
    entries = sorted(entries, key=lambda e: e["file"])
    total = sum(e["bytes"] for e in entries)
    text = json.dumps({"format": "parity-dump/1", "total_bytes": total, "dumps": entries}, indent=1)
    temporary = MANIFEST.with_suffix(".tmp")
    temporary.write_text(text + "\n")
    temporary.replace(MANIFEST)
    return total


def record_all(patterns):
    entries = {e["file"]: e for e in read_manifest()}
    for recipe, precision in jobs(patterns):
        start, path = time.monotonic(), FOLDER / f"{recipe.name}.{precision}.h5"
        model, inputs = record(recipe, precision, path)
        entries[path.name] = entry(recipe, precision, path, model, inputs)
        print(f"{path.name:40s} {path.stat().st_size / 1e6:6.2f} MB  {recipe.level:6s} {time.monotonic() - start:5.1f} s", flush=True)
    gone = [name for name in entries if not (FOLDER / name).exists()]
    for name in gone:
        del entries[name]
    total = write_manifest(entries.values())
    print(f"{len(entries)} dumps, {total / 1e6:.2f} MB; manifest {MANIFEST.relative_to(ROOT)}")
    if total > LIMIT:
        raise SystemExit(f"more than the {LIMIT / 1e6:.0f} MB that the repository should carry")


def check():
    """Exit status 1 when a file differs from the manifest, is missing, or is not in it."""
    entries = {e["file"]: e for e in read_manifest()}
    wrong = [f"{name}: missing" for name in entries if not (FOLDER / name).exists()]
    for path in sorted(FOLDER.glob("*.h5")):
        if path.name not in entries:
            wrong.append(f"{path.name}: not in the manifest")
        elif sha256(path) != entries[path.name]["sha256"]:
            wrong.append(f"{path.name}: sha256 differs from the manifest")
    if not entries:
        wrong.append(f"{MANIFEST}: no dumps listed")
    print("\n".join(wrong) or f"{len(entries)} dumps are those of the manifest")
    return 1 if wrong else 0


def again(patterns):
    """Exit status 1 when a second recording computes anything else than the first."""
    entries = {e["file"]: e for e in read_manifest()}
    differing = 0
    with tempfile.TemporaryDirectory() as folder:
        for recipe, precision in jobs(patterns):
            path = Path(folder) / f"{recipe.name}.{precision}.h5"
            record(recipe, precision, path)
            same = entries.get(path.name, {}).get("content_sha256") == content_sha256(path)
            differing += not same
            print(f"{path.name:40s} {'same' if same else 'DIFFERS'}", flush=True)
    return 1 if differing else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dumps", nargs="*", default=["*"], help="glob patterns of dump names without .h5")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare the files with the manifest")
    what.add_argument("--again", action="store_true", help="record again and compare the contents")
    args = parser.parse_args()
    if args.check:
        return check()
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]
    return again(args.dumps) if args.again else record_all(args.dumps)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Records the pairs with a known answer that `parity-check selftest` is measured on: seeded faults and benign changes of real models.

    record_selftest_pairs.py                    record all into reference_dumps/selftest/ and rewrite its MANIFEST.json
    record_selftest_pairs.py 'gpt2.bf16.*'      only those (names without .h5; the manifest keeps the others); their reference is recorded too
    record_selftest_pairs.py --check [NAME…]    are the files those of the manifest? (sha256; needs no torch)
    record_selftest_pairs.py --list             names, diagnoses and modules of what there is to record

Recording needs reference_dumps/requirements.txt and transformers (tests/python/requirements.txt). Same seeds and same machine type: same tensors.
"""
import argparse
import fnmatch
import hashlib
import importlib.metadata
import json
import logging
import os
import sys
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "reference_dumps" / "selftest"
LIMIT = 8_000_000        # bytes of all files together: they live in the repository
EVENT_CHUNK = 1 << 10    # the recorder's own, 64 KiB, is more than the rest of such a small file
LIBRARIES = ("torch", "diffusers", "transformers", "accelerate", "numpy", "h5py")


def sha256(path):
    with open(path, "rb") as f:
        return hashlib.file_digest(f, "sha256").hexdigest()


def read_manifest(folder):
    path = folder / "MANIFEST.json"
    return json.loads(path.read_text()) if path.exists() else {"references": [], "pairs": []}


def write_manifest(folder, references, pairs):
    """One line per entry, sorted by file; entries of files that are gone are dropped. Returns the bytes of all files."""
    from selftest_models.machine import machine

    parts = {}
    for key, entries in (("references", references), ("pairs", pairs)):
        parts[key] = [e for e in sorted(entries, key=lambda e: e["file"]) if (folder / e["file"]).exists()]
    total = sum((folder / e["file"]).stat().st_size for entries in parts.values() for e in entries)
    head = {"format": "parity-selftest/1", "total_bytes": total, "machine": machine(),
            "versions": {name: importlib.metadata.version(name) for name in LIBRARIES}, "python": sys.version.split()[0]}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}," for k, v in head.items()]
    for key, entries in parts.items():
        lines += [f' "{key}": [', ",\n".join("  " + json.dumps(e) for e in entries), " ]" + ("," if key == "references" else "")]
    temporary = folder / "MANIFEST.tmp"
    temporary.write_text("{\n" + "\n".join(lines) + "\n}\n")
    temporary.replace(folder / "MANIFEST.json")
    return total


def chosen(patterns):
    from selftest_models import pairs
    from selftest_models.families import FAMILIES

    every = [pair for family in FAMILIES.values() for pair in pairs.pairs_of(family)]
    names = [pair.name for pair in every]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise SystemExit(f"two pairs are called {', '.join(sorted(twice))}")
    some = [pair for pair in every if any(fnmatch.fnmatch(pair.name, p) for p in patterns)]
    if not some:
        raise SystemExit(f"no pair is called {' or '.join(patterns)}; --list names all")
    return some


def small_files():
    """Same format, less room: a small event chunk, and HDF5's compact groups (since 1.8). An almost empty file is 9 kB then instead of 81 kB."""
    import parity_probe.dump_file as dump_file
    from h5py import h5f

    access = dump_file._access

    def compact(disk):
        properties = access(disk)
        properties.set_libver_bounds(h5f.LIBVER_V18, h5f.LIBVER_V110)
        return properties
    dump_file.EVENT_CHUNK, dump_file._access = EVENT_CHUNK, compact


def record_all(folder, patterns):
    """Exit status 1 when a pair shows nothing or something else than it says (such a pair is not written)."""
    from selftest_models import pairs
    small_files()
    folder.mkdir(parents=True, exist_ok=True)
    manifest = read_manifest(folder)
    references, entries = ({e["file"]: e for e in manifest[key]} for key in ("references", "pairs"))
    plain, refused = {}, 0
    for pair in chosen(patterns):
        if pair.reference not in plain:
            plain[pair.reference] = pairs.listen(pair.family, pair.dtype)
            path = folder / f"{pair.reference}.h5"
            pairs.record(path, pair.family, pair.dtype)
            references[path.name] = {"file": path.name, "family": pair.family.name, "dtype": pair.dtype, "seed": pair.family.seed,
                                     "threads": pairs.THREADS, "sha256": sha256(path)}
        path = folder / f"{pair.name}.h5"
        try:
            entries[path.name] = {**pairs.make(pair, path, plain[pair.reference]), "sha256": sha256(path)}
        except pairs.Refused as e:
            refused += 1
            entries.pop(path.name, None)
            path.unlink(missing_ok=True)
            print(f"refused: {e}", flush=True)
            continue
        print(f"{pair.name:60s} {path.stat().st_size / 1e3:6.1f} kB  {entries[path.name]['module']}", flush=True)
    total = write_manifest(folder, references.values(), entries.values())
    manifest = read_manifest(folder)
    print(f"{len(manifest['references'])} references, {len(manifest['pairs'])} pairs, {total / 1e6:.2f} MB")
    if total > LIMIT:
        raise SystemExit(f"more than the {LIMIT / 1e6:.0f} MB that the repository should carry")
    return 1 if refused else 0


def check(folder, patterns):
    """Exit status 1 when a file differs from the manifest, is missing, or is not in it."""
    manifest = read_manifest(folder)
    entries = {e["file"]: e for e in manifest["references"] + manifest["pairs"]}
    some = {name: e for name, e in entries.items() if any(fnmatch.fnmatch(name.removesuffix(".h5"), p) for p in patterns)}
    wrong = [f"{name}: missing" for name in some if not (folder / name).exists()]
    wrong += [f"{name}: sha256 differs from the manifest" for name, e in some.items()
              if (folder / name).exists() and sha256(folder / name) != e["sha256"]]
    wrong += [f"{path.name}: not in the manifest" for path in sorted(folder.glob("*.h5")) if path.name not in entries]
    if not some:
        wrong.append(f"{folder / 'MANIFEST.json'}: lists none of {' '.join(patterns)}")
    if manifest.get("total_bytes", 0) > LIMIT:
        wrong.append(f"the manifest counts {manifest['total_bytes']} bytes, more than {LIMIT}")
    print("\n".join(wrong) or f"{len(some)} files are those of the manifest")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", nargs="*", default=["*"], metavar="NAME", help="glob patterns of pair names")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files lie (default: reference_dumps/selftest)")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--check", action="store_true", help="compare the files with the manifest")
    what.add_argument("--list", action="store_true", help="print the pairs")
    args = parser.parse_args()
    if args.check:
        return check(args.folder, args.pairs)
    sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "probes" / "python")]
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    warnings.filterwarnings("ignore", message="TF32 acceleration")
    logging.getLogger("transformers").setLevel(logging.ERROR)
    if args.list:
        for p in chosen(args.pairs):
            print(f"{p.name:60s} {p.fault.diagnosis if p.fault else 'honest':26s} {p.fault.module if p.fault else ''}")
        return 0
    return record_all(args.folder, args.pairs)


if __name__ == "__main__":
    sys.exit(main())

"""Structure of src/ and kernels/, as a test. Usage: check_folder_order.py ROOT

- A folder includes only itself and earlier ones.
- Each dependency has one home.
- core, judge, report and gate know no tensor: no header of ATen reaches them, however many includes lie between.
"""
import functools
import pathlib
import re
import sys

ORDER = ["core", "kernels", "dump", "trace", "onnx", "ops", "models", "measure", "pair", "calls", "ranks", "diagnose", "judge", "jobs", "pipeline", "video", "report", "gate", "export", "weights", "selftest", "bench", "cli"]
HOMES = {"hdf5.h": "dump", "H5public.h": "dump", "zip.h": "dump", "openssl/": "dump", "opencv2/": "video", "libavcodec/": "video", "libavformat/": "video",
         "libswscale/": "video", "CLI/": "cli", "onnx/onnx": "onnx", "google/protobuf/": "onnx", "cuda_runtime": "kernels", "hwy/": "kernels"}
WITHOUT_TENSORS = ("core", "judge", "report", "gate")
TENSORS = ("ATen/", "torch/")


def sources(root):
    """(path, folder) of every source; files directly under src/ belong to no folder (the precompiled headers)."""
    for top in ("src", "kernels"):
        for path in sorted((root / top).rglob("*")):
            parts = path.relative_to(root).parts
            if path.suffix in (".hpp", ".cpp", ".cu", ".h") and (top == "kernels" or len(parts) > 2):
                yield path, "kernels" if top == "kernels" else parts[1]


@functools.cache
def includes(path):
    """(line number, what is included), in order."""
    found = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if match := re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line):
            found.append((number, match[1]))
    return tuple(found)


def tensor_header(root, path, seen):
    """How a header of ATen reaches `path`: the chain of includes, or None."""
    for _, included in includes(path):
        if included.startswith(TENSORS):
            return [included]
        next_file = root / "src" / included
        if next_file not in seen and next_file.exists():
            seen.add(next_file)
            if chain := tensor_header(root, next_file, seen):
                return [included, *chain]
    return None


def violations(root):
    found = list(sources(root))
    if len(found) < 10:
        yield f"only {len(found)} source files found under {root}: nothing was checked"
    for source, own in found:
        where = source.relative_to(root)
        if own not in ORDER:
            yield f"{where}: folder '{own}' has no place in the order"
            continue
        for number, included in includes(source):
            first = included.split("/")[0]
            if first in ORDER and "/" in included and ORDER.index(first) > ORDER.index(own):
                yield f"{where}:{number}: {own} must not include {included}"
            for prefix, home in HOMES.items():
                if included.startswith(prefix) and own != home:
                    yield f"{where}:{number}: {included} belongs in {home} alone"
        if own in WITHOUT_TENSORS and (chain := tensor_header(root, source, set())):
            yield f"{where}: {own} knows no tensor, but gets {' -> '.join(chain)}"


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "folder order holds")
    sys.exit(bool(found))

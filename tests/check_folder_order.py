"""Each folder of src/ (and kernels/) includes only itself and earlier ones; each dependency has one home. Usage: check_folder_order.py ROOT"""
import pathlib
import re
import sys

ORDER = ["core", "dump", "trace", "kernels", "ops", "models", "compare", "video", "report", "weights", "selftest", "bench", "cli"]
HOMES = {"hdf5.h": "dump", "H5public.h": "dump", "opencv2/": "video", "libavcodec/": "video", "libavformat/": "video", "libswscale/": "video", "CLI/": "cli", "cuda_runtime": "kernels", "hwy/": "kernels"}


def folder_of(path):
    return "kernels" if path.parts[0] == "kernels" else path.parts[1]


def violations(root):
    sources = [p for top in ("src", "kernels") for p in (root / top).rglob("*") if p.suffix in (".hpp", ".cpp", ".cu", ".h")]
    if len(sources) < 10:
        yield f"only {len(sources)} source files found under {root}: nothing was checked"
    for source in sources:
        own = folder_of(source.relative_to(root))
        if own not in ORDER:
            yield f"{source.relative_to(root)}: folder '{own}' has no place in the order"
            continue
        for number, line in enumerate(source.read_text().splitlines(), 1):
            match = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            if not match:
                continue
            included = match[1]
            first = included.split("/")[0]
            if first in ORDER and "/" in included and ORDER.index(first) > ORDER.index(own):
                yield f"{source.relative_to(root)}:{number}: {own} must not include {included}"
            for prefix, home in HOMES.items():
                if included.startswith(prefix) and own != home:
                    yield f"{source.relative_to(root)}:{number}: {included} belongs in {home} alone"


if __name__ == "__main__":
    found = list(violations(pathlib.Path(sys.argv[1])))
    print("\n".join(found) or "folder order holds")
    sys.exit(bool(found))

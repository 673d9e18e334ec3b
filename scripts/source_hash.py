"""What a recorded result was made by: tests that take long are run again when this changes."""
import hashlib
import sys


def source_hash(root, folders, files=()):
    """One hash of names and contents: the C++ sources in `folders`, in the order of names, and `files`; all of them under `root`."""
    sources = [path for folder in folders for path in (root / folder).rglob("*") if path.suffix in (".cpp", ".hpp")]
    if len(sources) < len(folders):
        sys.exit(f"source_hash: {root} lacks sources; run it in a checkout")
    digest = hashlib.sha256()
    for path in [*sorted(sources), *files]:
        digest.update(f"{path.relative_to(root)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return digest.hexdigest()

"""The one place of the version number inside the package (pyproject.toml repeats it)."""
__version__ = "0.1.0"
FORMAT = "parity-dump/1"

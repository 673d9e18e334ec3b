"""What this package raises when a file cannot be written, read or recorded."""


class Error(RuntimeError):
    """One clear line: which file, which dataset, what happened, what to do."""

"""What this package raises when a file cannot be written, read or recorded."""


class Error(RuntimeError):
    """One clear line: which file, which dataset, what happened, what to do."""


class Stopped(Error):
    """`parity-check watch --stop` found the first divergence: at `path`, for the reason `diagnosis`."""

    def __init__(self, address, path, diagnosis):
        super().__init__(f"{address}: stopped by parity-check watch: first divergence at {path or '(result)'}: {diagnosis}")
        self.path, self.diagnosis = path, diagnosis

"""python -m parity_probe.engines.onnxruntime MODEL.onnx --inputs FILE.npz -o FILE. Bad input is one line on stderr and exit status 2."""
import argparse
import sys

import numpy as np

from ...errors import Error
from ...printable import printable
from .graph import LEVELS
from .recorder import record


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def _inputs(path):
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, AttributeError) as e:
        raise Error(f"{path}: is no .npz file of arrays: {e}") from None


def main(argv=None):
    """Runs the command line; returns the exit status."""
    parser = _Parser(prog="python -m parity_probe.engines.onnxruntime", description="Records every value that ONNX Runtime computes for a model.")
    parser.add_argument("model", help="ONNX file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HDF5 file to write")
    parser.add_argument("--inputs", required=True, action="append", metavar="FILE.npz", help="arrays by the names of the model's inputs; given again: the next run")
    parser.add_argument("--optimisation", choices=sorted(LEVELS), default="none", help="default: none, the graph as it stands")
    parser.add_argument("--providers", default="CPUExecutionProvider", help="execution providers, with commas between them")
    parser.add_argument("--no-weights", action="store_true", help="leaves the initializers out")
    options = parser.parse_args(argv)
    try:
        record(options.model, [_inputs(f) for f in options.inputs], options.output, options.optimisation, options.providers.split(","), not options.no_weights)
        return 0
    except (Error, ValueError) as e:
        print(f"parity_probe: {printable(e)}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

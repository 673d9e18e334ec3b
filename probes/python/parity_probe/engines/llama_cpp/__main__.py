"""python -m parity_probe.engines.llama_cpp MODEL.gguf --tokens 1,2,3 -o FILE. Bad input is one line on stderr and exit status 2."""
import argparse
import sys

from ...errors import Error
from ...printable import printable
from .recorder import CACHES, record


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def _ids(text):
    try:
        return [int(t) for t in text.replace(",", " ").split()]
    except ValueError:
        raise argparse.ArgumentTypeError(f"token ids are whole numbers with commas between them, not {text!r}") from None


def main(argv=None):
    """Runs the command line; returns the exit status."""
    parser = _Parser(prog="python -m parity_probe.engines.llama_cpp", description="Records every tensor that llama.cpp computes for given token ids.")
    parser.add_argument("model", help="GGUF file")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="HDF5 file to write")
    parser.add_argument("--tokens", required=True, action="append", type=_ids, metavar="1,2,3",
                        help="token ids; given again: the next evaluation, on the same KV cache")
    parser.add_argument("--library", help="libllama (default: PARITY_LLAMA, an installed wheel, the system's)")
    parser.add_argument("--cache", choices=sorted(CACHES), default="f32", help="dtype of the KV cache (default: f32; llama.cpp's own: f16)")
    parser.add_argument("--flash-attention", choices=("on", "off", "auto"), default="off", help="default: off, so that attention's parts are seen")
    parser.add_argument("--outputs", choices=("all", "last"), default="all", help="logits of which tokens (default: all)")
    parser.add_argument("--views", action="store_true", help="also tensors that compute nothing")
    parser.add_argument("--batch", action="store_true", help="every tensor with a leading axis of one, as PyTorch models have it")
    parser.add_argument("--threads", type=int, default=0, help="default: one per core")
    options = parser.parse_args(argv)
    try:
        record(options.model, options.tokens, options.output, options.library, options.cache, {"on": True, "off": False, "auto": None}[options.flash_attention],
               options.outputs, options.views, options.batch, options.threads)
        return 0
    except (Error, ValueError) as e:
        print(f"parity_probe: {printable(e)}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())

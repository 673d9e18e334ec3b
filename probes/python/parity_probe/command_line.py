"""Command line: `record` a script that nobody changed, `show` what a file holds. Bad input is one line on stderr and exit status 2."""
import argparse
import os
import sys

from .errors import Error
from .printable import printable
from .version import __version__


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: {printable(message)} (see {self.prog} --help)\n")


def _parser():
    parser = _Parser(prog="parity_probe", description="Records what a model computes, for parity-check.")
    parser.add_argument("--version", action="version", version=f"parity_probe {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="record|show|sketch")
    record = commands.add_parser("record", help="run a Python script and record a model that it calls",
                                 description="Runs a Python script as `python script.py args...` would, and records every call of one torch.nn.Module in it: "
                                 "the first one called, unless --model names another.")
    record.add_argument("-o", "--output", required=True, metavar="FILE", help="HDF5 file to write")
    record.add_argument("--level", choices=("op", "module", "sketch", "stats"), default="op",
                        help="op: store every value (default); module: only inputs and outputs of modules; sketch: a few kB of each module's output; "
                        "stats: its mean, standard deviation, extremes")
    record.add_argument("--model", metavar="NAME", help="class name (WanTransformer3DModel), or an expression in the script's globals (pipe.transformer)")
    record.add_argument("-m", dest="is_module", action="store_true", help="script is a module name, as in python -m")
    record.add_argument("script", help="the script")
    record.add_argument("args", nargs=argparse.REMAINDER, help="its arguments")
    show = commands.add_parser("show", help="what a file holds, briefly")
    show.add_argument("file")
    show.add_argument("--all", action="store_true", help="list every module call")
    sketch = commands.add_parser("sketch", help="a recording as sketches; or the sum of the ranks' sketches",
                                 description="One recording: writes its sketches. Several of level sketch: adds up the parts that the ranks of a parallel run recorded.")
    sketch.add_argument("-o", "--output", required=True, metavar="FILE", help="HDF5 file to write")
    sketch.add_argument("files", nargs="+", help="recordings")
    return parser


def main(argv=None):
    """Runs the command line; returns the exit status (the script's own where it ends with one)."""
    options = _parser().parse_args(argv)
    try:
        if options.command == "show":
            from .show import show
            return show(options.file, options.all)
        if options.command == "sketch":
            from .sketch_files import convert, merge
            merge(options.files, options.output) if len(options.files) > 1 else convert(options.files[0], options.output)
            return 0
        from .script import record_script
        if not options.is_module and not os.path.isfile(options.script):
            raise Error(f"{options.script}: no such script")
        return record_script(options)
    except Error as e:
        print(f"parity_probe: {printable(e)}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # `show | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0

"""python -m zoo run | nameless | thin | exports | list | show | settings: see README.md beside this file.

    PYTHONPATH=scripts:probes/python .venv-models/bin/python -m zoo run --families 'qwen*,bert' --faults 6 --benign all --json /tmp/zoo.json
"""
import argparse
import os
import sys
from pathlib import Path

from . import DRAW, HALVES

ROOT = Path(__file__).resolve().parents[2]
BINARY = ROOT / "build" / "release" / "parity-check"


def _number(text):
    return None if text == "all" else int(text)


def _selected(args):
    from .runner import selection
    return selection(args.families, args.half, tuple(args.dtypes.split(",")), getattr(args, "sample", False))


def _run(args):
    from . import dry, runner, tables
    if args.sample:
        args.faults, args.benign = runner.SAMPLE["faults"], runner.SAMPLE["benign"]
    binary = None if args.dry else args.binary.resolve()
    if binary and not binary.exists():
        raise ValueError(f"{args.binary}: there is no such program; build it or give --binary")

    def each(rows):
        if args.json:
            runner.save(args.json, rows, command=" ".join(sys.argv), machine=_machine(), totals=tables.Tally(rows).numbers())
    rows = runner.run(_selected(args), binary, args.faults, args.benign, args.jobs, args.limit, each, elsewhere=not args.sample)
    if args.dry:
        print(dry.text(rows))
        return 0
    print(tables.text(rows, not args.totals))
    return 1 if tables.Tally(rows).shortfalls() else 0


def _machine():
    from selftest_models.machine import machine
    return machine()


def _list(args):
    from .benign import CHANGES
    from .cases import benign_of, faults_of
    from .operators import OPERATORS
    for entry, dtype in _selected(args):
        model = entry.build(dtype)
        faults, benign = faults_of(entry, dtype, model), benign_of(entry, dtype, model)
        print(f"{entry.name}.{dtype:5s} {entry.kind:10s} {entry.half:12s} {sum(p.numel() for p in model.parameters()):7d} parameters, "
              f"{len(faults)} faults, {len(benign)} benign changes")
        if args.cases:
            print("".join(f"  {f.name}\n" for f in faults) + "".join(f"  {c.name}\n" for c in benign), end="")
    print(f"{len(OPERATORS)} operators: {', '.join(OPERATORS)}\n{len(CHANGES)} benign changes: {', '.join(CHANGES)}")
    return 0


def _show(args):
    from . import show
    return show.show(args.name, args.folder, args.binary)


def _nameless(args):
    from . import nameless, quiet
    quiet()
    rows = nameless.run(_selected(args), args.binary.resolve(), args.faults, args.limit,
                        lambda row: print(f"{row['family']}.{row['dtype']} {row['name']}: {'right' if row['placed'] else 'WRONG'}", file=sys.stderr, flush=True))
    print(nameless.text(rows))
    return 0 if rows and all(r["placed"] for r in rows) else 1


def _thin(args):
    from . import quiet, thin
    quiet()
    rows = thin.run(_selected(args), args.binary.resolve(), args.faults, args.limit,
                    lambda row: print(f"{row['family']}.{row['dtype']} {row['name']}: {len(row['wrong'])} wrong, {len(row['missed'])} not paired", file=sys.stderr, flush=True))
    print(thin.text(rows))
    return 0 if rows and not any(r["wrong"] for r in rows) else 1


def _exports(args):
    from . import exports, quiet
    quiet()
    rows = exports.run(_selected(args), args.binary.resolve(), args.faults, args.limit, lambda row: print(
        f"{row['family']} {row['name']}: {'refused' if row['kind'] == 'refused' else 'right' if exports.right(row) else 'WRONG'}", file=sys.stderr, flush=True))
    print(exports.text(rows))
    return 0 if rows and all(exports.right(r) for r in rows if r["kind"] != "refused") else 1


def _settings(args):
    from . import settings
    return settings.run(_selected(args), args.binary.resolve(), args.layers)


def _serve(_args):
    from . import elsewhere
    return elsewhere.serve()


def _add_draw(command):
    command.add_argument("--draw", type=int, default=0, metavar="N", help="other weights, inputs and places of faults for each N (default 0, which is what is scored)")


def parser():
    p = argparse.ArgumentParser(prog="python -m zoo", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = p.add_subparsers(required=True, metavar="COMMAND")

    def command(name, do, text, families="*"):
        c = commands.add_parser(name, help=text, description=text)
        c.set_defaults(do=do)
        c.add_argument("--families", default=families, metavar="GLOB", help="names, comma-separated")
        c.add_argument("--half", default="all", choices=(*HALVES, "all"), help="default: all, which is development and held_out")
        c.add_argument("--dtypes", default="fp32,bf16")
        c.add_argument("--binary", type=Path, default=BINARY, help="default: %(default)s")
        return c
    c = command("run", _run, "score parity-check compare")
    c.add_argument("--faults", type=_number, default=8, metavar="K|all", help="faults of each family and dtype (default 8)")
    c.add_argument("--benign", type=_number, default=None, metavar="K|all", help="benign changes of each (default all)")
    c.add_argument("--sample", action="store_true", help="the small selection of CI")
    c.add_argument("--dry", action="store_true", help="make every file and ask parity-check nothing: how many cases there are, and what is refused")
    _add_draw(c)
    c.add_argument("--jobs", type=int, default=1)
    c.add_argument("--limit", type=int, default=120, help="seconds a compare may take")
    c.add_argument("--json", type=Path, help="write all rows")
    c.add_argument("--totals", action="store_true", help="leave out the list of what went wrong (for held_out and closed sets)")
    c = command("nameless", _nameless, "names made meaningless and a gross fault in the middle: is the first divergence still at its module?")
    c.add_argument("--faults", type=_number, default=1, metavar="K", help="faults of each family and dtype (default 1)")
    c.add_argument("--limit", type=int, default=120, help="seconds a compare may take")
    c = command("thin", _thin, "nameless ports that recorded half of the modules, healthy and with gross faults: how many tensors are paired with what they are?")
    c.add_argument("--faults", type=_number, default=1, metavar="K", help="faults of each family and dtype (default 1)")
    c.add_argument("--limit", type=int, default=120, help="seconds a compare may take")
    c = command("exports", _exports, "exported by torch.onnx and run in ONNX Runtime, plain and optimised, healthy and with faults put in before (.venv-engines)")
    c.add_argument("--faults", type=_number, default=1, metavar="K", help="faults of each family (default 1)")
    c.add_argument("--limit", type=int, default=120, help="seconds a compare may take")
    c = command("list", _list, "print the entries")
    c.add_argument("--cases", action="store_true", help="with their faults and benign changes")
    c = commands.add_parser("show", help="make the files of one case, run parity-check on them and print its report")
    c.add_argument("name", help="FAMILY.DTYPE CASE as the report prints it, in one argument: 'llama.bf16 norm_eps_x10@model.norm'")
    _add_draw(c)
    c.add_argument("--folder", type=Path, default=Path("/tmp/zoo-case"))
    c.add_argument("--binary", type=Path, default=BINARY)
    c.set_defaults(do=_show)
    c = command("settings", _settings, "references against themselves, and the main job, on other settings of the machine", "bert,gptj,vit,wav2vec2,unet2d,sd3")
    c.add_argument("--layers", default="all", help="--layer of the main job; 'none' leaves it out")
    c = commands.add_parser("serve", help="(used by the runner) benign runs under an environment that must hold before PyTorch loads")
    c.set_defaults(do=_serve)
    return p


def main(arguments=None):
    from . import quiet
    args = parser().parse_args(arguments)
    quiet()
    if hasattr(args, "draw"):
        os.environ[DRAW] = str(args.draw)
    try:
        return args.do(args)
    except ValueError as e:
        print(f"zoo: {e}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":   # some models go through sets: the order of their calls must be the same in every process
        os.execve(sys.executable, [sys.executable, "-m", "zoo", *sys.argv[1:]], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())

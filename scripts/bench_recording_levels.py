#!/usr/bin/env python3
"""What recording costs: one block of Wan 1.3B in its true widths, off and at every level, in PyTorch and in C++, in turns; seconds, processor time, MB.

    bench_recording_levels.py                              1530 tokens, fp32 and bf16
    bench_recording_levels.py --tokens 6120 --turns 5      9 frames of 544x960
    bench_recording_levels.py --json FILE --markdown FILE  the figures, the table

PyTorch runs diffusers' WanTransformer3DModel with one layer and random weights under `parity_probe.record`; C++ the same model by hand on LibTorch under probes/cpp (scripts/bench_recording_block.cpp,
compiled here with g++). A recording takes --forwards forwards: the first, with which the weights are written, counts as `once`; the others, with the end of the file, are `a forward`. Each level of
a turn is compared with the forwards of that turn that nobody recorded, before it and after; medians over all turns. Needs the Python of scripts/test (.venv-models).
"""
import argparse
import contextlib
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "probes" / "python"))
import h5py  # noqa: E402
import torch  # noqa: E402

import parity_probe  # noqa: E402
from parity_probe.show import read_events  # noqa: E402

LEVELS = "stats", "sketch", "module", "op"
GOALS = dict(stats=3, sketch=10, module=25)   # per cent of a forward
DTYPES = dict(fp32=torch.float32, bf16=torch.bfloat16)
FIELDS = "first", "others", "first_processor", "others_processor"


def grid(tokens):
    """(rows, columns) of one frame with so many tokens, as square as there is."""
    high = next(n for n in range(int(tokens ** .5), 0, -1) if tokens % n == 0)
    return high, tokens // high


class Python:
    """diffusers' model under parity_probe.record, in this process."""
    name = "Python"

    def __init__(self, dtype, tokens, threads, file):
        from diffusers import WanTransformer3DModel
        torch.set_num_threads(threads)
        torch.manual_seed(0)
        self._file, (high, wide) = file, grid(tokens)
        self._model = WanTransformer3DModel(num_attention_heads=12, attention_head_dim=128, text_dim=4096, ffn_dim=8960, num_layers=1).eval()
        for name, p in self._model.named_parameters():   # as from_pretrained does
            if not any(kept in name for kept in self._model._keep_in_fp32_modules):
                p.data = p.data.to(DTYPES[dtype])
        self._inputs = dict(hidden_states=torch.randn(1, 16, 1, 2 * high, 2 * wide, dtype=DTYPES[dtype]), timestep=torch.tensor([500]),
                            encoder_hidden_states=torch.randn(1, 512, 4096, dtype=DTYPES[dtype]))

    def session(self, level, forwards):
        """FIELDS of so many forwards, recorded together unless level is off."""
        begin, used = time.perf_counter(), time.process_time()
        with torch.no_grad(), parity_probe.record(self._model, self._file, level=level) if level != "off" else contextlib.nullcontext():
            self._model(**self._inputs)
            middle, used_so_far = time.perf_counter(), time.process_time()
            for _ in range(forwards - 1):
                self._model(**self._inputs)
        return dict(zip(FIELDS, (middle - begin, time.perf_counter() - middle, used_so_far - used, time.process_time() - used_so_far)))

    def close(self):
        del self._model


class Cpp:
    """The same by hand on LibTorch under probes/cpp, in a process of its own that waits between its turns."""
    name = "C++"

    def __init__(self, dtype, tokens, threads, file, program):
        self._process = subprocess.Popen([program, file, *map(str, grid(tokens)), dtype, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def session(self, level, forwards):
        print(level, forwards, file=self._process.stdin, flush=True)
        return dict(zip(FIELDS, map(float, self._process.stdout.readline().split())))

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def compiled(folder):
    """The C++ side as a program."""
    libtorch = Path(torch.__file__).parent
    hdf5 = [shlex.split(subprocess.run(["pkg-config", kind, "hdf5"], check=True, capture_output=True, text=True).stdout) for kind in ("--cflags", "--libs")]
    subprocess.run(["g++", "-std=c++20", "-O2", f"-I{ROOT / 'probes/cpp'}", "-isystem", libtorch / "include", *hdf5[0], ROOT / "scripts/bench_recording_block.cpp",
                    "-o", folder / "block", *hdf5[1], f"-L{libtorch / 'lib'}", "-ltorch", "-ltorch_cpu", "-lc10", f"-Wl,-rpath,{libtorch / 'lib'}", "-pthread"], check=True)
    return folder / "block"


def described(file):
    """{(path, call, dtype, shape)} of the modules' results in a recording of level stats."""
    with h5py.File(file) as f:
        return {(e["path"], e["call"], e["d"], tuple(e["s"])) for e in read_events(f) if e["e"] == "point" and e["role"] == "output"}


def warm_up(sides, levels, file):
    """One forward of each, not timed: {(side, level): bytes}. Raises SystemExit when the sides do not record the same tensors."""
    sizes, tensors = {}, {}
    for side in sides:
        side.session("off", 1)
        for level in levels:
            side.session(level, 1)
            sizes[side.name, level] = os.path.getsize(file)
            if level == "stats":
                tensors[side.name] = described(file)
    if len({frozenset(t) for t in tensors.values()}) > 1:
        raise SystemExit(f"the sides record other tensors: {sorted(tensors['Python'] ^ tensors['C++'])[:4]} …")
    return sizes


def taken(side, level, forwards):
    """FIELDS of a session; `others` of one forward."""
    return {field: value / (forwards - 1 if field.startswith("others") else 1) for field, value in side.session(level, forwards).items()}


def row(side, level, turns, size, forwards):
    """What one level costs one side. `turns`: [(recorded, off before, off after)]; `size`: bytes of a recording of one forward and of all."""
    each, shares, shares_processor, once = [], [], [], []
    for on, *off in turns:
        plain, plain_processor = (statistics.mean(o[field] for o in off) for field in ("others", "others_processor"))
        each.append(on["others"])
        shares.append(on["others"] / plain - 1)
        shares_processor.append(on["others_processor"] / plain_processor - 1)
        once.append(on["first"] - on["others"])
    a_forward = (size[1] - size[0]) / (forwards - 1)
    return dict(side=side, level=level, seconds=statistics.median(each), share=statistics.median(shares), share_processor=statistics.median(shares_processor),
                once_seconds=statistics.median(once), bytes_once=size[0] - a_forward, bytes=a_forward, shares=shares, shares_processor=shares_processor)


def measure(sides, args, file):
    """The rows of all sides, off first; that one's shares are how far its own forwards before and after lie apart: the noise."""
    first = warm_up(sides, args.levels, file)
    turns, sizes = {(s.name, level): [] for s in sides for level in ("off", *args.levels)}, {}
    for number in range(args.turns):
        shift = number % len(args.levels)
        for side in sides:
            off = taken(side, "off", 2)
            for level in args.levels[shift:] + args.levels[:shift]:
                on = taken(side, level, args.forwards)
                sizes[side.name, level] = os.path.getsize(file)
                os.unlink(file)
                before, off = off, taken(side, "off", 2)
                turns[side.name, level].append((on, before, off))
                turns[side.name, "off"].append((off, before))
    return [row(name, level, found, (first.get((name, level), 0), sizes.get((name, level), 0)), args.forwards) for (name, level), found in turns.items()]


def table(rows):
    """In Markdown."""
    yield "| dtype | side | level | a forward, s | more than off | more processor time | once, s | MB once | MB a forward | goal |"
    yield "|---|---|---|--:|--:|--:|--:|--:|--:|--:|"
    for r in rows:
        goal = f"≤ {GOALS[r['level']]} %" if r["level"] in GOALS else ""
        if r["level"] == "off":
            noise = statistics.median(map(abs, r["shares"])), statistics.median(map(abs, r["shares_processor"]))
            yield f"| {r['dtype']} | {r['side']} | off | {r['seconds']:.3f} | (± {100 * noise[0]:.1f} %) | (± {100 * noise[1]:.1f} %) | | | | |"
            continue
        yield (f"| {r['dtype']} | {r['side']} | {r['level']} | {r['seconds']:.3f} | {100 * r['share']:+.1f} % | {100 * r['share_processor']:+.1f} % | {r['once_seconds']:.2f} | "
               f"{r['bytes_once'] / 1e6:.2f} | {r['bytes'] / 1e6:.2f} | {goal} |")


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = dict(type=lambda text: tuple(text.split(",")))
    parser.add_argument("--tokens", type=int, default=1530, help="of the video; 512 of text come to them")
    parser.add_argument("--dtypes", default=tuple(DTYPES), help=",".join(DTYPES), **words)
    parser.add_argument("--sides", default=("Python", "C++"), help="Python,C++", **words)
    parser.add_argument("--levels", default=LEVELS, help=",".join(LEVELS), **words)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--forwards", type=int, default=3, help="in a recording, at least 2")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--folder", default="/dev/shm" if os.path.isdir("/dev/shm") else None, help="where the recordings go (default: memory)")
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    args = parser.parse_args()
    for given, known in ((args.dtypes, DTYPES), (args.sides, ("Python", "C++")), (args.levels, LEVELS)):
        if not set(given) <= set(known):
            sys.exit(f"bench_recording_levels.py: known are {', '.join(known)}, not {', '.join(given)}")
    if args.forwards < 2:
        sys.exit("bench_recording_levels.py: --forwards must be at least 2")
    return args


def main():
    args, rows = parsed(), []
    warnings.filterwarnings("ignore")
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        file, program = os.path.join(folder, "recording.h5"), compiled(Path(folder)) if "C++" in args.sides else None
        for dtype in args.dtypes:
            sides = [Python(dtype, args.tokens, args.threads, file) if side == "Python" else Cpp(dtype, args.tokens, args.threads, file, program) for side in args.sides]
            rows += [dict(dtype=dtype, **r) for r in measure(sides, args, file)]
            for side in sides:
                side.close()
    cpu = next((line.split(": ")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "?")
    text = [f"One block of Wan 1.3B, {args.tokens} tokens of video and 512 of text; {args.turns} turns of {args.forwards} forwards; {cpu}, {args.threads} threads, torch {torch.__version__}; "
            f"recordings in {args.folder or tempfile.gettempdir()}.", "", *table(rows)]
    print("\n".join(text))
    if args.markdown:
        args.markdown.write_text("\n".join(text) + "\n")
    if args.json:
        args.json.write_text(json.dumps(dict(cpu=cpu, **{k: v for k, v in vars(args).items() if k not in ("json", "markdown")}, rows=rows), indent=1) + "\n")


if __name__ == "__main__":
    main()

"""Runs a selection of the zoo, in some processes at once."""
import concurrent.futures
import fnmatch
import json
import multiprocessing
import sys

from . import CLOSED, HALVES, unit
from .cases import number
from .catalogue import ENTRIES
from .tables import wrong

SAMPLE = dict(half="development", entries=3, faults=3, benign=2)   # what CI runs: so many entries of each kind, in one dtype each


def selection(families="*", half="all", dtypes=("fp32", "bf16"), sample=False):
    """[(entry, dtype)]; with `sample` some of each kind, one dtype of each in turn. Raises ValueError where nothing is selected."""
    patterns, half = families.split(","), SAMPLE["half"] if sample else half
    halves = [h for h in HALVES if h not in CLOSED] if half == "all" else [half]   # a closed set is scored when it is named, and never by the way
    some = [e for e in ENTRIES.values() if any(fnmatch.fnmatch(e.name, p) for p in patterns) and e.half in halves]
    if sample:
        units = [(e, d) for i, e in enumerate(_sampled(some)) for d in dtypes if d in e.dtypes and (d == dtypes[i % len(dtypes)] or len(e.dtypes) == 1)]
    else:
        units = [(e, d) for e in some for d in dtypes if d in e.dtypes]
    if not units:
        raise ValueError(f"no family is called {families} in half {half} with dtype {', '.join(dtypes)}; `list` names all")
    return units


def _sampled(entries):
    groups = {}
    for e in sorted(entries, key=lambda e: number(e.name, "sample")):
        groups.setdefault(e.kind, []).append(e)
    return [e for _kind, members in sorted(groups.items()) for e in members[:SAMPLE["entries"]]]


def _one(name, dtype, *how):
    from . import quiet
    quiet()
    return unit.run(ENTRIES[name], dtype, *how)


def run(units, binary, faults=None, benign=None, jobs=1, limit=120, each=None, elsewhere=True):
    """Rows of all units, in the order of `units`; each(rows so far) is told after every unit."""
    tasks = [(e.name, d, binary, faults, benign, limit, elsewhere) for e, d in units]
    rows = []
    for part in _parts(tasks, jobs):
        rows += part
        if each:
            each(rows)
            print(_said(part), file=sys.stderr, flush=True)
    return rows


def _parts(tasks, jobs):
    if jobs == 1:
        yield from (_one(*task) for task in tasks)
        return
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        yield from (future.result() for future in [pool.submit(_one, *task) for task in tasks])


def _said(rows):
    bad = sum(map(bool, map(wrong, rows)))
    judged = f", {bad} not as they should be" if rows[0]["verdict"] else ""
    return f"{rows[0]['family']}.{rows[0]['dtype']}: {sum('refused' not in r for r in rows)} cases in {rows[0]['unit_seconds']} s{judged}"


def save(path, rows, **about):
    with open(path, "w") as f:
        f.write(json.dumps({"format": "parity-zoo/1", **about}, default=str)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")

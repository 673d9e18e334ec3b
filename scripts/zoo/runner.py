"""Runs a selection of the zoo, in some processes at once."""
import concurrent.futures
import fnmatch
import json
import multiprocessing
import sys

from . import unit
from .catalogue import ENTRIES

SAMPLE = dict(faults=2, benign=1)   # of every entry, in one dtype: what CI runs


def selection(families="*", half="all", dtypes=("fp32", "bf16"), sample=False):
    """[(entry, dtype)]; with `sample` one dtype of each entry, in turn. Raises ValueError where nothing is selected."""
    patterns = families.split(",")
    some = [e for e in ENTRIES.values() if any(fnmatch.fnmatch(e.name, p) for p in patterns) and half in ("all", e.half)]
    units = [(e, d) for i, e in enumerate(some) for d in dtypes if d in e.dtypes and (not sample or len(dtypes) == 1 or d == dtypes[i % 2] or len(e.dtypes) == 1)]
    if not units:
        raise ValueError(f"no family is called {families} in half {half} with dtype {', '.join(dtypes)}; `list` names all")
    return units


def _one(name, dtype, binary, faults, benign, limit):
    from . import quiet
    quiet()
    return unit.run(ENTRIES[name], dtype, binary, faults, benign, limit)


def run(units, binary, faults=None, benign=None, jobs=1, limit=120, progress=True):
    """Rows of all units, in the order of `units`."""
    tasks = [(e.name, d, binary, faults, benign, limit) for e, d in units]
    if jobs == 1:
        return [row for task in tasks for row in _told(_one(*task), progress)]
    with concurrent.futures.ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        return [row for future in [pool.submit(_one, *task) for task in tasks] for row in _told(future.result(), progress)]


def _told(rows, progress):
    if progress:
        first = rows[0]
        bad = sum(1 for r in rows if "refused" not in r and ((r["kind"] == "fault" and not r["found"]) or (r["kind"] != "fault" and r["verdict"] != "pass")))
        print(f"{first['family']}.{first['dtype']}: {sum('refused' not in r for r in rows)} cases in {first['unit_seconds']} s, {bad} not as they should be",
              file=sys.stderr, flush=True)
    return rows


def save(path, rows, **about):
    with open(path, "w") as f:
        f.write(json.dumps({"format": "parity-zoo/1", **about}, default=str)[:-1] + ', "rows": [\n' + ",\n".join(map(json.dumps, rows)) + "\n]}\n")

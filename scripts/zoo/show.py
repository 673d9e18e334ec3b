"""Makes one case again, to look into it: the files stay in a folder."""
import subprocess
from pathlib import Path

from .cases import benign_of, faults_of
from .catalogue import ENTRIES
from .unit import Unit


def find(unit, case):
    """The fault or benign change called `case`; (None, None) for the recording itself. Raises ValueError."""
    for fault in faults_of(unit.entry, unit.dtype, unit.model):
        if fault.name == case:
            return fault, None
    for change in benign_of(unit.entry, unit.dtype, unit.model):
        if change.name == case:
            return None, change
    if case in ("", "the recording itself", "its module outputs"):
        return None, None
    raise ValueError(f"{unit.entry.name}.{unit.dtype} has no case {case!r}; `list --cases --families {unit.entry.name}` names all")


def show(name, folder, binary):
    """The report of parity-check on case `name`, as the tables print it; returns its exit status."""
    unit_name, _, case = name.partition(" ")
    family, _, dtype = unit_name.rpartition(".")
    if family not in ENTRIES or dtype not in ENTRIES[family].dtypes:
        raise ValueError(f"{unit_name!r} is no FAMILY.DTYPE; `list` names all")
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    unit = Unit(ENTRIES[family], dtype, folder, binary)
    fault, change = find(unit, case)
    candidate = folder / "candidate.h5"
    if fault:
        truth, recorded, company = unit.make_fault(fault, candidate)
        print(f"recorded: {recorded}, with: {company}\ntruth: {truth}")
    elif change:
        print(f"{unit.make_benign(change, candidate):.2%} of elements differ from the plain run")
    else:
        candidate = unit.reference
    command = [str(Path(binary).resolve()), "compare", str(unit.reference), str(candidate)]
    print(" ".join(command), flush=True)
    return subprocess.run(command, cwd=folder).returncode

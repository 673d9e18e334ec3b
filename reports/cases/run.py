"""Runs the cases of cases.json: real bugs, each from two released packages. run.py [NAME…] (all of them without names); writes results.json and README.md.

The fixed version is the reference, the faulty one the port, and a third release without the fault the control. Every version is installed into a folder of
its own under build/cases, without dependencies; torch, numpy and the rest come from the Python that runs this (.venv-models).
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import zipfile

import table

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
WORK = ROOT / "build" / "cases"
BINARY = os.environ.get("PARITY_CHECK_BINARY", str(ROOT / "build" / "release" / "parity-check"))
HUBS = {"transformers": [((5, 0), ["huggingface_hub==0.36.0"]), ((5, 16), ["httpx==0.28.1", "httpcore==1.0.9"])],  # before this version: what it imports
        "diffusers": [((0, 20), ["huggingface_hub==0.23.5"]), ((0, 36), ["huggingface_hub==0.36.0"])]}                  # in place of what .venv-models has


def companions(package, version):
    """What a version needs beside it because .venv-models has none, or a newer one that it cannot import."""
    number = tuple(int(n) for n in version.split(".")[:2])
    return next((needed for before, needed in HUBS.get(package, []) if number < before), [])


def install(package, version):
    """Folder with this wheel unpacked and nothing else; made once."""
    folder, wheels = WORK / "packages" / f"{package}-{version}", WORK / "wheels"
    if not folder.exists():
        found = f"{package.replace('-', '_')}-{version}-*.whl"
        if not list(wheels.glob(found)):
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check", "--dest", str(wheels),
                            f"{package}=={version}"], check=True)
        with zipfile.ZipFile(next(wheels.glob(found))) as wheel:
            wheel.extractall(folder.with_suffix(".partial"))
        folder.with_suffix(".partial").rename(folder)
    return folder


def record(case, version):
    """The recording of a case by one version, or by "VERSION patched": with the fix put in by the case."""
    out = WORK / "recordings" / f"{case['name']}.{version.replace(' ', '.')}.h5"
    version, *patched = version.split()
    out.parent.mkdir(parents=True, exist_ok=True)
    wanted = [f"{case['package']}=={version}", *companions(case["package"], version), *case.get("extra", [])]
    path = [*(str(install(*one.split("=="))) for one in wanted), str(ROOT / "probes" / "python"), str(HERE)]
    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(path), HF_HUB_OFFLINE="1", PYTHONWARNINGS="ignore", TRANSFORMERS_VERBOSITY="error", OMP_NUM_THREADS="2")
    done = subprocess.run([sys.executable, str(HERE / "record.py"), case["name"], case["package"], str(out), *patched], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{case['name']} in {case['package']} {version}: {done.stderr.strip().splitlines()[-1]}")
    return out


def compare(reference, candidate):
    """(exit status, report, seconds) of parity-check compare."""
    report = candidate.with_suffix(".json")
    start = time.monotonic()
    done = subprocess.run([BINARY, "compare", str(reference), str(candidate), "--threads", "2", "--json", str(report)], capture_output=True, text=True)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(done.stderr.strip())
    return done.returncode, json.loads(report.read_text()), time.monotonic() - start


def output_difference(report):
    """Relative L2 of the result in the free run, the largest of several: what the bug does to it in this run."""
    results = [op["free"]["rel_l2"] or 0 for op in report["ops"] if op["path"] == "" or re.fullmatch(r"\[\d+\]", op["path"])]
    return float(f"{max(results):.2g}")


def judge(case):
    """One row of results.json."""
    fixed = record(case, case["fixed"])
    _, control, _ = compare(fixed, record(case, case["control"]))
    status, report, seconds = compare(fixed, record(case, case["faulty"]))
    first = report["first_divergence"] or {}
    path = first.get("path")
    return {"name": case["name"], "found": status == 1, "path": path, "gate": first.get("gate"), "sentence": first.get("diagnosis", ""),
            "at_module": status == 1 and bool(re.fullmatch(case["module"], path)), "named": status == 1 and bool(re.search(case["named"], first["diagnosis"])),
            "verdict": report["verdict"], "counts": report["counts"], "output_difference": output_difference(report), "control": control["verdict"],
            "control_counts": control["counts"], "seconds": round(seconds, 1)}


def main(names):
    cases = json.loads((HERE / "cases.json").read_text())["cases"]
    results = HERE / "results.json"
    rows = {row["name"]: row for row in json.loads(results.read_text())} if results.exists() else {}
    for case in cases:
        if names and case["name"] not in names:
            continue
        try:
            rows[case["name"]] = judge(case)
        except RuntimeError as error:
            print(f"{case['name']}: {error}", file=sys.stderr)
            continue
        print(json.dumps(rows[case["name"]], ensure_ascii=False))
    kept = [rows[case["name"]] for case in cases if case["name"] in rows]
    results.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n")
    table.write()


if __name__ == "__main__":
    main(sys.argv[1:])

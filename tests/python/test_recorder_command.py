"""The command line: records models of scripts nobody changed; bad input is one line and status 2."""
import os
import pathlib
import subprocess
import sys

import pytest
import torch

from test_recorder_replay import one_thread, parity_probe, replay  # noqa: F401

_ENV = {**os.environ, "PYTHONPATH": str(pathlib.Path(parity_probe.__file__).parents[1])}
_SCRIPT = """
import os
os.environ["OMP_NUM_THREADS"] = "1"
import sys
import beside, torch
assert __name__ == "__main__" and __file__.endswith("run.py") and torch.get_num_threads() == 1
print("args", sys.argv[1:])
class Encoder(torch.nn.Linear): pass
class Denoiser(torch.nn.Sequential): pass
torch.manual_seed(0)
class Pipe:
    encoder, denoiser = Encoder(2, 2), Denoiser(torch.nn.Linear(2, 2), torch.nn.ReLU())
pipe = Pipe()
def main():
    x = pipe.encoder(torch.ones(1, 2))
    for _ in range(2):
        x = pipe.denoiser(x) * 2
    print(x.tolist())
    if "fail" in sys.argv:
        raise ValueError("the script's own")
    sys.exit(3 if "three" in sys.argv else None)
main()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run.py").write_text(_SCRIPT)
    (tmp_path / "beside.py").write_text("")
    return tmp_path


def probe(folder, *args):
    return subprocess.run([sys.executable, "-m", "parity_probe", *args], cwd=folder, env=_ENV, capture_output=True, text=True, timeout=100)


def paths(r):
    return [e["path"] for e in r.events if e["e"] == "call"]


def test_a_script_runs_as_it_is_and_its_first_model_is_recorded(folder):
    plain = subprocess.run([sys.executable, "run.py", "-x", "--level"], cwd=folder, capture_output=True, text=True)
    done = probe(folder, "record", "-o", "a.h5", "run.py", "-x", "--level")
    assert done.returncode == 0 and done.stdout == plain.stdout and "Traceback" not in done.stderr
    assert "1 call of Encoder" in done.stderr and "not recorded: Denoiser" in done.stderr
    r = replay(folder / "a.h5")
    assert paths(r) == [""] and r.file.attrs["model"] == "Encoder" and r.file.attrs["complete"] == 1


@pytest.mark.parametrize("name", ["Denoiser", "pipe.denoiser[0]"])
def test_a_model_by_name_and_the_scripts_own_status(folder, name):
    done = probe(folder, "record", "-o", "a.h5", "--model", name, "--level", "module", "run.py", "three")
    assert done.returncode == 3
    r = replay(folder / "a.h5")
    assert paths(r) == ([""] * 2 if "[0]" in name else ["", "0", "1"] * 2) and r.file.attrs["complete"] == 1


def test_a_failing_script_fails_as_it_would(folder):
    done = probe(folder, "record", "-o", "a.h5", "run.py", "fail")
    assert done.returncode == 1 and "ValueError: the script's own" in done.stderr and "parity_probe/script.py" not in done.stderr
    assert replay(folder / "a.h5").file.attrs["complete"] == 1


@pytest.mark.parametrize("args, words", [
    (("record", "-o", "a.h5", "no.py"), "no.py: no such script"), (("record", "run.py"), "-o/--output"), (("record", "-o", "no/a.h5", "run.py"), "no folder"),
    (("record", "-o", "a.h5", "--level", "deep", "run.py"), "invalid choice"), (("record", "-o", "a.h5", "--model", "Nope", "run.py"), "the script called Encoder"),
    (("record", "-o", "a.h5", "beside.py"), "called no torch.nn.Module"), (("show", "run.py"), "run.py: not an HDF5"), (("show", "none.h5"), "none.h5"), ((), "required")])
def test_bad_input_is_one_line_and_status_2(folder, args, words):
    done = probe(folder, *args)
    assert done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not (folder / "a.h5").exists()


def test_show(tmp_path, capsys):
    from parity_probe.command_line import main
    model = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range(70)])
    with parity_probe.record(model, tmp_path / "a.h5"):
        model(torch.ones(1, 2))
    assert main(["show", str(tmp_path / "a.h5")]) == 0
    out = capsys.readouterr().out
    assert "complete, level op, Sequential" in out and "70 aten::addmm" in out and "(model) #0 Sequential: input float32[1, 2] -> 0 float32[1, 2]" in out
    assert "... 11 more (--all)" in out
    import h5py
    with h5py.File(tmp_path / "b.h5", "w") as f:
        f["x"] = 1
    assert main(["show", str(tmp_path / "b.h5")]) == 2 and "not a parity-dump" in capsys.readouterr().err
    data = (tmp_path / "a.h5").read_bytes()
    for size in (100, len(data) // 2, len(data) - 3000):
        (tmp_path / "c.h5").write_bytes(data[:size])
        assert main(["show", str(tmp_path / "c.h5")]) == 2 and capsys.readouterr().err.count("\n") == 1


def test_names_in_a_file_reach_the_terminal_as_printable_text(tmp_path, capsys):
    from parity_probe.command_line import main
    hostile = "x\x1b[2J\x1b]0;owned\x07\n# forged\r\u202e\x9b31m"
    with parity_probe.Writer(tmp_path / "a.h5", model=hostile, producer=hostile) as w:
        w.write("block" + hostile, [1.0])
    assert main(["show", str(tmp_path / "a.h5")]) == 0
    assert main(["show", str(tmp_path / hostile)]) == 2
    out, err = capsys.readouterr()
    assert "\\x1b[2J" in out and "\\x1b[2J" in err and err.count("\n") == 1
    assert all(c.isprintable() for line in (out + err).split("\n") for c in line) and "\n# forged" not in out + err

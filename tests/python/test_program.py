"""How the tests start the program (program.py): what runs in a fork of a loaded process gives what a start of its own gives."""
import glob
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import program

pytestmark = pytest.mark.skipif(not os.path.exists(program.BINARY), reason="needs a built program")


@pytest.fixture
def dump():
    return os.path.join(os.path.dirname(__file__), "../../reference_dumps/selftest/gpt2.fp32.h5")


def itself(*arguments, **how):
    return subprocess.run([program.BINARY, *arguments], capture_output=True, text=True, **how)


@pytest.mark.parametrize("arguments", [["--version"], [], ["inspect", "{dump}", "--ops"], ["inspect", "none.h5"], ["compare", "{dump}", "{fault}"], ["no such command"]])
def test_status_and_output_are_those_of_a_start(arguments, dump, tmp_path):
    arguments = [a.format(dump=dump, fault=dump.replace(".h5", ".fault.gain-1e-3.h5")) for a in arguments]
    ours, theirs = program.run(*arguments, cwd=tmp_path), itself(*arguments, cwd=tmp_path)
    assert ours.returncode == theirs.returncode and program._Preloaded.of_this_thread() is not None
    without_time = [line for line in ours.stdout.splitlines() if " s" not in line]
    assert without_time == [line for line in theirs.stdout.splitlines() if " s" not in line]
    assert ours.stderr == theirs.stderr and ours.args == theirs.args


def test_folder_and_environment_reach_the_command(dump, tmp_path):
    assert program.run("compare", dump, dump, "--json", "here.json", "-q", cwd=tmp_path).returncode == 0
    assert (tmp_path / "here.json").exists()
    run = program.run("run", "--layer", "all", env={**os.environ, "PARITY_REFERENCE_DUMPS": str(tmp_path / "nowhere")})
    assert run.returncode == 2 and "nowhere" in run.stderr
    assert program.run("--version").returncode == 0   # neither is left behind


def test_settings_of_libraries_mean_a_start_of_its_own(dump, tmp_path):
    server = program._Preloaded.of_this_thread()
    run = program.run("compare", dump, dump, "--json", tmp_path / "r.json", "-q", env={**os.environ, "ATEN_CPU_CAPABILITY": "default"})
    assert run.returncode == 0 and '"DEFAULT"' in (tmp_path / "r.json").read_text().upper()
    assert server.process.poll() is None and server.settings == program._settings(os.environ)


def test_threads_get_their_own_answers(dump):
    with ThreadPoolExecutor(4) as threads:
        status = list(threads.map(lambda i: program.run(*(["inspect", dump] if i % 2 else ["inspect", f"none{i}.h5"])), range(40)))
    assert [s.returncode for s in status] == [0 if i % 2 else 2 for i in range(40)]
    assert all(f"none{i}.h5" in s.stderr for i, s in enumerate(status) if i % 2 == 0)


def at_work_in(folder):
    def place(process):
        try:
            return os.readlink(process)
        except OSError:  # it has ended, or is not ours
            return ""

    return [process for process in glob.glob("/proc/[0-9]*/cwd") if place(process) == str(folder)]


def test_too_late_ends_the_command_and_the_next_runs(dump, tmp_path):
    server = program._Preloaded.of_this_thread()
    with ThreadPoolExecutor(1) as beside:
        began = beside.submit(until, lambda: at_work_in(tmp_path), "the command began")
        with pytest.raises(subprocess.TimeoutExpired):
            program.run("watch", dump, "--listen", "127.0.0.1:0", cwd=tmp_path, timeout=3)
        began.result()
    assert server.process.wait(10) == -signal.SIGKILL
    until(lambda: not at_work_in(tmp_path), "the command ended with the process that it was forked from")
    assert program.run("--version").returncode == 0


def until(done, what):
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end, f"not in 20 s: {what}"
        time.sleep(.02)


def test_check_and_time(dump):
    assert program.run("inspect", dump, check=True).cpu_seconds > 0
    with pytest.raises(subprocess.CalledProcessError):
        program.run("inspect", "none.h5", check=True)

"""mpirun -n N parity-check compare: the report of one process, and a killed rank is told."""
import contextlib
import itertools
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest
from finished_work import SECONDS, finish, record_pair, report, start, units_of

pytestmark = pytest.mark.skipif(shutil.which("mpirun") is None, reason="needs mpirun (apt-get install openmpi-bin)")


def mpirun(ranks):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks)]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return record_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def whole(pair, tmp_path_factory):
    file = tmp_path_factory.mktemp("whole") / "r.json"
    assert finish(start(pair, file))[0] == 1
    return report(file)


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_report_is_that_of_one_process(pair, whole, tmp_path, ranks):
    file = tmp_path / "r.json"
    status, err = finish(start(pair, file, launcher=mpirun(ranks)))
    assert status == 1 and "parity-check:" not in err, err
    assert report(file) == whole and not units_of(file).exists()


NAMES = {"MPICH": ("PMI_RANK", "PMI_SIZE"), "srun": ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS")}


@pytest.mark.parametrize("launcher", NAMES)
def test_other_launchers_and_hosts_that_share_files_alone(pair, whole, tmp_path, launcher):
    """Each process has a network of its own, without any interface, where that is allowed."""
    rank_in, size_in = NAMES[launcher]
    apart = ["unshare", "--net"] if subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0 else []
    file = tmp_path / "r.json"
    ranks = [start(pair, file, launcher=[*apart, "env", f"{rank_in}={rank}", f"{size_in}=2"]) for rank in (0, 1)]
    assert [finish(process) for process in ranks] == [(1, ""), (0, "")]
    assert report(file) == whole and not units_of(file).exists()


def rank_of(pid):
    environment = pathlib.Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((int(entry.split(b"=")[1]) for entry in environment if entry.startswith(b"OMPI_COMM_WORLD_RANK=")), -1)


def ranks_under(launcher):
    """{rank: process id} of a launcher's children."""
    children = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    return {rank_of(pid): int(pid) for pid in children}


class InSteps:
    """Two ranks that stop before they begin, and run only while the test lets them: on a busy machine one would be done before the other is there."""

    def __init__(self, pair, file):
        self.file = file
        self.process = start(pair, file, launcher=[*mpirun(2), "sh", "-c", 'kill -STOP $$; exec "$@"', "sh"])
        while set(ranks_under(self.process.pid)) != {0, 1}:
            assert self.process.poll() is None
            time.sleep(.002)
        self.ranks = ranks_under(self.process.pid)

    def signal(self, number, *ranks):
        for rank in ranks or self.ranks:
            os.kill(self.ranks[rank], number)

    def run_until(self, done, rarely=set):
        """5 ms at a time, with pauses for whoever else is here; the ranks in `rarely()` in each hundredth of them alone. Both are stopped then."""
        for step in itertools.count():
            if done():
                return
            ranks = [rank for rank in self.ranks if rank not in rarely() or step % 100 == 99]
            self.signal(signal.SIGCONT, *ranks)
            time.sleep(.005)
            self.signal(signal.SIGSTOP, *ranks)
            time.sleep(.01)

    def written(self):
        return units_of(self.file).read_text(errors="replace") if units_of(self.file).exists() else ""

    def takers(self):
        return {int(rank) for rank in re.findall(r"^take (\d)", self.written(), re.M)}

    def finished(self):
        return self.written().count("\nunit ")

    def kill(self):
        for pid in self.ranks.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=SECONDS)


def both_at_work(pair, folder, most):
    """InSteps with units taken by both ranks and 6 to `most` finished. Begun again where 5 ms became .3 s and one did most of them: Linux held SIGSTOP back."""
    for attempt in range(20):
        file = folder / str(attempt) / "r.json"
        file.parent.mkdir()
        two = InSteps(pair, file)
        with contextlib.suppress(ProcessLookupError):  # a rank has ended
            two.run_until(lambda: two.takers() == {0, 1}, rarely=two.takers)
            two.run_until(lambda: two.finished() >= 6 and file.exists())
            if two.finished() <= most:
                return two
        two.kill()
    raise AssertionError(f"one rank did nearly everything in each of {attempt + 1} runs")


def test_both_ranks_work(pair, whole, tmp_path):
    two = both_at_work(pair, tmp_path, len(whole["ops"]) - 1)
    two.signal(signal.SIGCONT)
    assert finish(two.process)[0] == 1 and report(two.file) == whole


@pytest.mark.parametrize("victim", [1, 0])
def test_a_killed_rank_is_told_and_the_rest_can_go_on(pair, whole, tmp_path, victim):
    two = both_at_work(pair, tmp_path, len(whole["ops"]) / 2)
    two.signal(signal.SIGKILL, victim)
    two.signal(signal.SIGCONT, 1 - victim)
    status, err = finish(two.process)
    assert status != 0
    assert len([line for line in err.splitlines() if line.startswith("parity-check:") and f"rank {victim} was killed" in line]) == 1, err
    assert report(two.file)["ops"][-1]["path"] == "(interrupted)"
    assert finish(start(pair, two.file, "--resume"))[0] == 1 and report(two.file) == whole


def test_bad_input_is_one_line(pair, tmp_path):
    status, err = finish(start((pair[0], tmp_path / "none.h5"), tmp_path / "r.json", launcher=mpirun(2)))
    assert status == 2 and len([line for line in err.splitlines() if line.startswith("parity-check:")]) == 1, err

"""compare --resume: what a killed or interrupted comparison had finished is read, not computed, and the report is the same."""
import re
import signal

import pytest
from finished_work import finish, record_pair, report, start, units_of, wait_for_units


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return record_pair(tmp_path_factory.mktemp("pair"))


@pytest.fixture(scope="module")
def whole(pair, tmp_path_factory):
    file = tmp_path_factory.mktemp("whole") / "r.json"
    assert finish(start(pair, file)) == (1, "")
    assert not units_of(file).exists()
    assert report(file)["first_divergence"]["path"] == "transformer.h.1.mlp.act/mul.3"
    return report(file)


def stop(pair, file, count, how=signal.SIGKILL, options=()):
    """Once so many units are finished. Begun again where it was over before the signal came: on a busy machine this process may sleep for .3 s, and the rest takes less."""
    before = {kept: kept.read_bytes() for kept in (file, units_of(file)) if kept.exists()}
    for _ in range(20):
        process = start(pair, file, *options)
        if wait_for_units(process, file, count):
            process.send_signal(how)
        stopped = finish(process)
        if units_of(file).exists():
            return stopped
        file.unlink()
        for kept, content in before.items():
            kept.write_bytes(content)
    raise AssertionError("it was over each time before it could be stopped")


@pytest.mark.parametrize("count", [2, 9, 25])
def test_a_killed_comparison_goes_on(pair, whole, tmp_path, count):
    file = tmp_path / "r.json"
    assert stop(pair, file, count)[0] == -signal.SIGKILL
    assert report(file)["ops"][-1]["path"] == "(interrupted)"
    kept = units_of(file).read_bytes().count(b"\nunit ")
    assert kept >= count
    resumed = start(pair, file, "--resume")
    assert finish(resumed) == (1, "")
    assert report(file) == whole and not units_of(file).exists()


def test_it_is_killed_twice_and_once_within_a_line(pair, whole, tmp_path):
    file = tmp_path / "r.json"
    stop(pair, file, 4)
    with units_of(file).open("ab") as torn:
        torn.write(b"unit 0123")
    stop(pair, file, 15, options=["--resume"])
    assert finish(start(pair, file, "--resume")) == (1, "") and report(file) == whole


def test_ctrl_c(pair, whole, tmp_path):
    file = tmp_path / "r.json"
    status, _ = stop(pair, file, 5, signal.SIGINT)
    assert status in (1, 3) and report(file)["ops"][-1]["path"] == "(interrupted)"
    assert finish(start(pair, file, "--resume")) == (1, "") and report(file) == whole


def test_finished_units_are_not_computed_again(pair, tmp_path):
    """Each has one line, whichever run wrote it."""
    file = tmp_path / "r.json"
    stop(pair, file, 12)
    before = {line.split(b" ")[2] for line in units_of(file).read_bytes().split(b"\n") if line.startswith(b"unit ")}
    stop(pair, file, len(before) + 3, options=["--resume"])
    numbers = [line.split(b" ")[2] for line in units_of(file).read_bytes().split(b"\n") if line.startswith(b"unit ")]
    assert len(numbers) == len(set(numbers)) > len(before)


def test_nothing_to_resume_is_said_and_it_begins(pair, whole, tmp_path):
    file = tmp_path / "r.json"
    status, err = finish(start(pair, file, "--resume"))
    assert status == 1 and err.count("\n") == 1 and "nothing to resume" in err and str(units_of(file)) in err
    assert report(file) == whole


def test_another_comparison_is_refused(pair, tmp_path):
    file = tmp_path / "r.json"
    stop(pair, file, 5)
    kept = units_of(file).read_bytes()
    status, err = finish(start(pair, file, "--resume", "--layer", "transformer.h.0*"))
    assert status == 2 and err.count("\n") == 1 and "--layer differs" in err
    # of the same size: recorded on another day
    other = tmp_path / "other.h5"
    bytes_of_port = pair[1].read_bytes()
    other.write_bytes(re.sub(rb"20\d\d-(\d\d-\d\d)", rb"1999-\1", bytes_of_port))
    assert other.read_bytes() != bytes_of_port
    status, err = finish(start((pair[0], other), file, "--resume"))
    assert status == 2 and err.count("\n") == 1 and "SHA-256" in err, err
    assert units_of(file).read_bytes().startswith(kept.split(b"\n")[0])


def test_a_tampered_unit_is_refused(pair, tmp_path):
    file = tmp_path / "r.json"
    stop(pair, file, 5)
    text = units_of(file).read_bytes()
    where = text.index(b"transformer.")
    units_of(file).write_bytes(text[:where] + b"T" + text[where + 1:])
    status, err = finish(start(pair, file, "--resume"))
    assert status == 2 and err.count("\n") == 1 and "was changed" in err and str(units_of(file)) in err

"""kill -9 at random moments, spread over the whole of a recording, and before each single change to what a reader may already see: of the model recorder, of the
Python Writer, of the C++ Writer. What is left can be read up to the last flush, by h5py and by parity-check."""

import pytest

import killed
from test_cpp_probe import port  # noqa: F401  a fixture


@pytest.fixture(params=["torch", "writer", "C++"])
def record(request):
    return killed.Started([request.getfixturevalue("port"), "counted"]) if request.param == "C++" else killed.Forked(request.param)


def test_kill_at_random_moments(tmp_path, record):
    judge = killed.kill_at_random_moments(record, tmp_path, kills=34, seed=7)
    assert not judge.wrong, "\n".join(judge.wrong)
    assert judge.found["part"] >= 8 and judge.found["torn"] == 0, judge.found


def test_kill_before_each_change(tmp_path, record):
    judge = killed.kill_before_each_change(record, tmp_path, last=120, judged=6)
    assert not judge.wrong, "\n".join(judge.wrong)
    assert judge.found["part"] >= 100 and judge.found["torn"] == 0, judge.found

"""kill -9 at random moments of the JAX recorder, around a jitted function with a named function inside: as test_recorder_killed.py."""
import killed


def test_kill_at_random_moments(tmp_path):
    judge = killed.kill_at_random_moments(killed.Forked("jax"), tmp_path, kills=25, seed=7)
    assert not judge.wrong, "\n".join(judge.wrong)
    assert judge.found["part"] >= 8 and judge.found["torn"] == 0, judge.found

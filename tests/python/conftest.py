"""No silent green: where PARITY_STRICT is set (CI), a skipped test fails unless no installation could have run it."""
import gc
import os

import pytest

# What a machine lacks by nature, not for want of a package.
UNAVOIDABLE = ("recorded on another machine", "no small disk can be mounted", "only root may mount", "needs a GPU", "transformers 5 has no Flax models",
               "No module named 'jax'")   # JAX lives in environments of its own, with tests of its own (test_jax_*.py)

# Importing PyTorch and its models makes a million objects that stay: going through them after every 700 new ones took a fifth of all that Python did in these tests.
gc.set_threshold(100_000)


def pytest_collection_finish():
    gc.freeze()  # what the imports have left; pytest itself collects several times at its end


def _reason(report):
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if os.environ.get("PARITY_STRICT") and report.skipped and not any(text in _reason(report) for text in UNAVOIDABLE):
        report.outcome, report.longrepr = "failed", f"skipped although it could run here: {_reason(report)}"


def pytest_collection_modifyitems(config, items):
    if os.environ.get("PARITY_STRICT") and not items:
        raise pytest.UsageError("no test was collected")

"""The zoo: an out-of-sample benchmark of `parity-check compare` on tiny models of transformers and diffusers, built at run time.

Nothing of it is tuned: models come from their config classes with spread random weights, faults are put in by mutation operators that look for the modules
they apply to, benign changes are other kernels for the same arithmetic. See README.md beside this file.
"""

CLOSED = ("fresh", "fresh_2", "fresh_3", "fresh_4", "fresh_5", "fresh_6", "fresh_7", "fresh_8", "fresh_9", "fresh_10", "fresh_11")   # folders of catalogue/, each scored only when it is named
HALVES = ("development", "held_out", *CLOSED)
DRAW = "PARITY_ZOO_DRAW"   # an environment variable, which the runner's processes inherit


def draw():
    """Which draw of weights, inputs and places of faults is made of each model. 0 is the one that is scored; others look for what is rare on models that are known."""
    import os
    return int(os.environ.get(DRAW, "0"))


def quiet():
    """The libraries' advice does not matter for tiny models with random weights. To be called before they are imported."""
    import os
    import warnings

    os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", DIFFUSERS_VERBOSITY="error")
    warnings.filterwarnings("ignore")

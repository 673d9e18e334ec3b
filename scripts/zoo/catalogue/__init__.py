"""The list of models. `development`, where one may look at single cases while limits are set, and `held_out`, which is only ever scored: an entry of the
files beside this one belongs to the one or the other by the parity of its name's CRC-32 (entry.py). A closed set (CLOSED in zoo/__init__.py) is all models
of the folder of its name, one file for each kind."""
import dataclasses
import importlib

from .. import CLOSED
from ..entry import KINDS
from . import audio, diffusion, language, text_encoders, vision


def _closed(name):
    files = [importlib.import_module(f"{__name__}.{name}.{kind}") for kind in KINDS]
    return [dataclasses.replace(entry, closed=name) for file in files for entry in file.ENTRIES]


LISTED = [e for file in (language, text_encoders, vision, audio, diffusion) for e in file.ENTRIES] + [e for name in CLOSED for e in _closed(name)]
ENTRIES = {e.name: e for e in LISTED}

"""The set `fresh`: models that were added when the judge was finished, to be scored once. Nothing was set or mended with one of them in sight."""
import dataclasses

from . import audio, diffusion, language, vision

ENTRIES = [dataclasses.replace(e, fresh=True) for part in (language, vision, audio, diffusion) for e in part.ENTRIES]

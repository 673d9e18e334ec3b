"""The list of models, in three sets. `development`, where one may look at single cases while limits are set, and `held_out`, which is only ever scored:
an entry belongs to the one or the other by the parity of its name's CRC-32 (entry.py). `fresh`, the models of the folder of that name."""
from . import audio, diffusion, fresh, language, text_encoders, vision

ENTRIES = {e.name: e for part in (language, text_encoders, vision, audio, diffusion, fresh) for e in part.ENTRIES}

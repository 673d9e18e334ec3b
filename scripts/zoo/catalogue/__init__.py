"""The list of models. Which half an entry belongs to is the parity of its name's CRC-32 (entry.py): `development`, where one may look
at single cases while limits are set, and `held_out`, which is only ever scored."""
from . import audio, diffusion, language, text_encoders, vision

ENTRIES = {e.name: e for part in (language, text_encoders, vision, audio, diffusion) for e in part.ENTRIES}

"""The set `fresh`: models that were added when the judge was finished, to be scored once. Nothing was set or mended with one of them in sight."""

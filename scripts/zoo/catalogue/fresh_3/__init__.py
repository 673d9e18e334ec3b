"""The set `fresh_3`: models chosen by their names alone, after the first three sets had been scored; to be scored once."""

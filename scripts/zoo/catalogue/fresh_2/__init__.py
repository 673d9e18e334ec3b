"""The set `fresh_2`: models chosen by their names alone, after the first three sets had been scored; to be scored once."""

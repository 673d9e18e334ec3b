"""The set `fresh_7`: models chosen by their names alone, after the first eight sets had been scored; to be scored once."""

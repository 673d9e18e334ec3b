"""The set `fresh_8`: models chosen by their names alone, after the first nine sets had been scored; to be scored once."""

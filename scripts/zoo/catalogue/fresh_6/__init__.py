"""The set `fresh_6`: models chosen by their names alone, after the first seven sets had been scored; to be scored once."""

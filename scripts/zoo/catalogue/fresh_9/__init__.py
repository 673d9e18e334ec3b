"""The set `fresh_9`: models chosen by their names alone, after the first ten sets had been scored; to be scored once."""

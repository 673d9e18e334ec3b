"""The set `fresh_4`: models chosen by their names alone, after the first five sets had been scored; to be scored once."""

"""The set `fresh_5`: models chosen by their names alone, after the first six sets had been scored; to be scored once."""

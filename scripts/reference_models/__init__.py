"""Models that the reference dumps are recorded from. Needs torch; diffusers only for its own two classes."""

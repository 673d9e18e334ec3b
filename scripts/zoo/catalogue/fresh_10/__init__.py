"""The set `fresh_10`: models of other libraries than transformers and diffusers, chosen by their names alone, after the first eleven sets had been scored; to be
scored once. They are in an environment of their own: requirements-libraries.txt beside the README says which and how."""

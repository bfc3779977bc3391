"""The verbs of the command ``tessarr``, one per file: each has `add` (its arguments) and `run`."""

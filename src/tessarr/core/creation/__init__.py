"""From the arguments of a user to new arrays: defaults, shorthands, the keywords of zarr-python 2."""

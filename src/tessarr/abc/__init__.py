"""zarr-python's ``zarr.abc``: the contracts that extensions inherit."""

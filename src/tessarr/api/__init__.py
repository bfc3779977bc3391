"""zarr-python's ``zarr.api``: the synchronous functions, and the same as coroutines."""

"""zarr-python's ``zarr.experimental``; nothing here is experimental in tessarr."""

"""The directory that `tessarr.as_zarr.install` puts on ``PYTHONPATH``: child processes have the alias too."""

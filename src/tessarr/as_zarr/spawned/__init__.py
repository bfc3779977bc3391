"""The directory that `tessarr.as_zarr.install` puts on ``PYTHONPATH``, so that child processes install the alias too."""

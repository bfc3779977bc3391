"""Measure HTTP servers of Zarr side by side: `make bench-serving`."""

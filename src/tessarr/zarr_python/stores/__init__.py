"""Stores of zarr-python as stores of tessarr, and the other way round."""

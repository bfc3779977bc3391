"""Stores whose values lie elsewhere: reference files, Icechunk repositories, stores of zarr-python."""

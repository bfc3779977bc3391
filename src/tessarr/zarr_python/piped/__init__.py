"""Serve what zarr-python passes to a codec pipeline: batches of chunks, and the array that is bound for them."""

"""Chunk grids: how an array is cut into chunks. One file per name of the specification."""

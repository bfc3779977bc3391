"""Chunk key encodings: grid index to key and back. One file per name of the specification."""

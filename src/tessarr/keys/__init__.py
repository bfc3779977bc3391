"""Chunk key encodings: coords to key and back. One file per name of the specification."""

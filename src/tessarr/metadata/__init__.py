"""Metadata: one in-memory model of the three formats, and the documents of each."""

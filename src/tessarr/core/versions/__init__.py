"""Versions of arrays whose chunks are kept as commits."""

"""Codecs from array to bytes: exactly one in a chain (``sharding_indexed`` is `tessarr.codecs.sharding`). One file per name."""

"""Zip archives as stores, local and remote."""

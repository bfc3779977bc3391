"""Engines: they move elements between a store and NumPy memory."""

"""Conventions that are recognised and reported, but not written."""

"""Conventions that are recognised and named, and not written."""

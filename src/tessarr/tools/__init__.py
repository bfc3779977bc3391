"""Whole hierarchies at once: migrate, check, repair, compare, digest, pyramids; copy, convert, rechunk."""

"""Tools for whole hierarchies: migrate, check, repair, compare, digest, pyramids; copy, convert, rechunk."""

"""Modules that every floor needs: JSON, the Rust extension module, segments of a value, ``to_dict`` and ``from_dict``."""

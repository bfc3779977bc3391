"""Modules that every floor needs: JSON, the Rust extension module, segments of a value."""

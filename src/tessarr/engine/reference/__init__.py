"""The reference engine: the executable specification in Python."""

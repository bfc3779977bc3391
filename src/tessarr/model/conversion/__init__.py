"""A node or a whole model in the other format."""

"""Convert a node or a whole model to the other format."""

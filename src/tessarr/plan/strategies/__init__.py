"""How the values of an array come from one chunking into another: in one step, or in stages over intermediate arrays."""

"""Draw values in the cells of a terminal: planes, lines and chunk maps."""

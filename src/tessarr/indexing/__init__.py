"""Indexing: turn an index expression into a selection (`request`), and cut that along the chunk grid (`plan`)."""

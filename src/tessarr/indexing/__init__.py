"""Indexing: what a user wrote between brackets, as a selection (`request`), cut along the chunk grid (`plan`)."""

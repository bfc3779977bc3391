"""Metadata documents in a store: read, written, walked, consolidated."""

"""Stores of the chunks of one array, and the storage transformers that make them, one per file."""

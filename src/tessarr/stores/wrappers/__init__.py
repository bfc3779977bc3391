"""Stores around a store: to watch, delay, shift, protect, cache or retry."""

"""Verbs for plans of long work."""

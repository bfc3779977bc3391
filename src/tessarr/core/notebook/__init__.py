"""Describe arrays and groups in HTML, for notebooks."""

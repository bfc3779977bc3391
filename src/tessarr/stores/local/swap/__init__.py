"""Transactions that exchange the root with a second tree."""

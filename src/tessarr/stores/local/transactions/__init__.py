"""Transactions of local files: the journal, committing, recovery."""

"""Several changes as one: transactions, and snapshots that they leave readable."""

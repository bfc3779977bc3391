"""The methods of `Group` by topic."""

"""The native engine: what Python says to the Rust module, and what it answers."""

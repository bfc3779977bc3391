"""The native engine: describes bound arrays to the Rust module, and calls it."""

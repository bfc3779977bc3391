"""Conventions: what attributes mean by agreement, read and written as pure functions over metadata."""

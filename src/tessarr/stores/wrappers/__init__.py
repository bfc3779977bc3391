"""Stores around a store: log, count, delay, prefix, make read-only, cache, retry."""

"""Rows that come and go: the appender, and followers."""

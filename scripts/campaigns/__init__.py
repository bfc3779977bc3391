"""Campaigns: one module each, and the log that they share."""

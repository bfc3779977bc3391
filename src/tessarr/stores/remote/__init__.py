"""Stores behind a network: requests in flight, coalescing, retry, the concurrency limit, credentials, and what opens a URL."""

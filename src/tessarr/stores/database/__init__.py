"""Stores in databases: SQLite, LMDB and DBM files, Redis and MongoDB servers."""

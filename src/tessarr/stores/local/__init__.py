"""Local files as a store: values in files, their locks, and the atomic replacement of a file."""

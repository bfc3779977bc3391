"""Claims of transactions on documents, where a store replaces one value at a time (level *publish*)."""

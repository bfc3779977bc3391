"""What a convention is: it is detected in metadata, read to a typed value, written as attributes, and checked."""

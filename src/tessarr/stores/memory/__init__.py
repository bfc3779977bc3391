"""Values in the memory of this process."""

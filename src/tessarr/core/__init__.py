"""Arrays, groups and hierarchies: opening, creating, reading, writing and changing nodes."""

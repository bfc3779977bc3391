"""Resolution levels of an array: built piece by piece, described by a convention."""

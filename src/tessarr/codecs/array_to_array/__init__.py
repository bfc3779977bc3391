"""Codecs from array to array: they change values, types or shapes. One file per name of the specification."""

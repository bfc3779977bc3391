"""Codecs from bytes to bytes: compressors and checksums. One file per name of the specification."""

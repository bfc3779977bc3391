"""The ``gzip`` codec under the module name of zarr-python; see `tessarr.codecs.bytes_to_bytes.gzip`."""

from tessarr.codecs.bytes_to_bytes.gzip import GzipCodec as GzipCodec

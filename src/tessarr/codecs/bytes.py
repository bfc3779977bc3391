"""The ``bytes`` codec under the module name of zarr-python; see `tessarr.codecs.array_to_bytes.bytes`."""

from tessarr.codecs.array_to_bytes.bytes import BytesCodec as BytesCodec
from tessarr.codecs.array_to_bytes.bytes import Endian as Endian

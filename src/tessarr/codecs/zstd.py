"""The ``zstd`` codec under the module name of zarr-python; see `tessarr.codecs.bytes_to_bytes.zstd`."""

from tessarr.codecs.bytes_to_bytes.zstd import ZstdCodec as ZstdCodec

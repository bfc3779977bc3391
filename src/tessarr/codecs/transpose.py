"""The ``transpose`` codec under the module name of zarr-python; see `tessarr.codecs.array_to_array.transpose`."""

from tessarr.codecs.array_to_array.transpose import TransposeCodec as TransposeCodec

"""The ``blosc`` codec under the module name of zarr-python; see `tessarr.codecs.bytes_to_bytes.blosc`."""

from tessarr.codecs.bytes_to_bytes.blosc import BloscCname as BloscCname
from tessarr.codecs.bytes_to_bytes.blosc import BloscCodec as BloscCodec
from tessarr.codecs.bytes_to_bytes.blosc import BloscShuffle as BloscShuffle

"""zarr-python's ``zarr.codecs.blosc``."""

from tessarr.codecs import BloscCname, BloscCodec, BloscShuffle

Shuffle = BloscShuffle
CName = BloscCname

__all__ = ["BloscCname", "BloscCodec", "BloscShuffle"]

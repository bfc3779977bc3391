"""Served views: an array as Zarr v3 with other chunks, codecs or another type, encoded when a chunk of it is requested.

A segment of the path that begins with ``@`` says what changes, for the array, or all arrays of the group, before it:

| segment | effect |
|---|---|
| ``@chunks=1x512x512`` | these lengths, for arrays of as many dimensions; ``auto``: about 1 MiB |
| ``@codecs=zstd`` | compressed so: ``zstd``, ``gzip``, ``blosc``, ``crc32c``, joined by ``+``; ``none`` (the default) |
| ``@dtype=float32`` | elements of this type. A number that it cannot hold is an error, never another number |
| ``@levels=nearest`` | each array is a group of an OME-Zarr 0.5 image, whose levels are made up; ``mean`` |
| ``@for=neuroglancer`` | what that client reads: types, chunks, levels; ``vizarr``, ``zarrita`` |

Several are joined by commas: ``x.zarr/@chunks=64x64,dtype=float32/air/zarr.json``. Nothing is stored.
"""

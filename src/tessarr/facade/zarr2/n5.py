"""zarr-python 2's ``zarr.n5``."""

from tessarr.facade.zarr2.storage import N5FSStore, N5Store  # pyright: ignore[reportAttributeAccessIssue]

__all__ = ["N5FSStore", "N5Store"]

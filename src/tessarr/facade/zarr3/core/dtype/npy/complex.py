"""zarr-python's ``zarr.core.dtype.npy.complex``."""

from tessarr.facade.zarr3.dtype import Complex64, Complex128

__all__ = ["Complex128", "Complex64"]

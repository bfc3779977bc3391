"""zarr-python's ``zarr.abc.buffer``."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.facade.zarr3.buffer.cpu import Buffer, BufferPrototype, NDBuffer

ArrayLike: TypeAlias = npt.NDArray[np.generic]
"""The array of bytes in a `Buffer`."""
NDArrayLike: TypeAlias = npt.NDArray[np.generic]
"""The array in an `NDBuffer`."""

__all__ = ["ArrayLike", "Buffer", "BufferPrototype", "NDArrayLike", "NDBuffer"]

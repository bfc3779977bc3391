"""zarr-python's ``zarr.abc.buffer``."""

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.facade.zarr3.buffer.cpu import Buffer, BufferPrototype, NDBuffer

if TYPE_CHECKING:
    ArrayLike: TypeAlias = npt.NDArray[np.generic]
    """The array of bytes in a `Buffer`."""
    NDArrayLike: TypeAlias = npt.NDArray[np.generic]
    """The array in an `NDBuffer`."""
else:
    ArrayLike = NDArrayLike = np.ndarray  # programs test with `isinstance`, which takes no generic alias

__all__ = ["ArrayLike", "Buffer", "BufferPrototype", "NDArrayLike", "NDBuffer"]

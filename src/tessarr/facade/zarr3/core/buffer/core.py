"""zarr-python's ``zarr.core.buffer.core``."""

from typing import Any, Protocol, TypeAlias, runtime_checkable

from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.facade.zarr3.buffer.cpu import Buffer, BufferPrototype, NDBuffer
from tessarr.types import AnyArray


@runtime_checkable
class ArrayLike(Protocol):
    """An array-like with dtype, ndim and size, indexed by slices."""

    @property
    def dtype(self) -> Any:
        """NumPy's name of the element type."""
        ...

    @property
    def ndim(self) -> int:
        """Number of axes."""
        ...

    @property
    def size(self) -> int:
        """Number of elements."""
        ...

    def __getitem__(self, key: slice) -> Any: ...

    def __setitem__(self, key: slice, value: object) -> None: ...


@runtime_checkable
class NDArrayLike(ArrayLike, Protocol):
    """An array with the methods of a NumPy array: dtype, shape, views and copies."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice) -> Any: ...

    def __setitem__(self, key: slice, value: object) -> None: ...

    def __array__(self) -> AnyArray: ...

    def reshape(self, shape: object, *, order: object = ...) -> Any:
        """Return the same elements in another shape."""
        ...

    def view(self, dtype: Any) -> Any:
        """Reinterpret the same memory as another dtype."""
        ...

    def astype(self, dtype: object, order: object = ..., *, copy: bool = ...) -> Any:
        """Convert the elements to another dtype."""
        ...

    def fill(self, value: object) -> None:
        """Set every element to `value`."""
        ...

    def copy(self) -> Any:
        """Copy the array."""
        ...

    def transpose(self, axes: object) -> object:
        """Return the array with its axes in another order."""
        ...

    def ravel(self, order: object = ...) -> object:
        """Flatten the array to one axis."""
        ...

    def all(self) -> bool:
        """Whether every element is true."""
        ...


ScalarType: TypeAlias = Any
NDArrayLikeOrScalar: TypeAlias = Any

__all__ = [
    "ArrayLike",
    "Buffer",
    "BufferPrototype",
    "NDArrayLike",
    "NDArrayLikeOrScalar",
    "NDBuffer",
    "default_buffer_prototype",
]

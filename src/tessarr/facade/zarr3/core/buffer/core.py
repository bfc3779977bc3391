"""zarr-python's ``zarr.core.buffer.core``."""

from typing import Any, Protocol, TypeAlias, runtime_checkable

from tessarr.facade.zarr3.buffer import default_buffer_prototype
from tessarr.facade.zarr3.buffer.cpu import Buffer, BufferPrototype, NDBuffer
from tessarr.types import AnyArray


@runtime_checkable
class ArrayLike(Protocol):
    """What has a dtype, a shape and elements along one axis."""

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
class NDArrayLike(Protocol):
    """What behaves as a NumPy array: dtype, shape, views and copies."""

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

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        ...

    def __len__(self) -> int: ...

    def __getitem__(self, key: slice) -> Any: ...

    def __setitem__(self, key: slice, value: object) -> None: ...

    def __array__(self) -> AnyArray: ...

    def reshape(self, shape: Any, *, order: Any = ...) -> Any:
        """The same elements in another shape."""
        ...

    def view(self, dtype: Any) -> Any:
        """The same memory as another type."""
        ...

    def astype(self, dtype: Any, order: Any = ..., *, copy: bool = ...) -> Any:
        """The elements in another type."""
        ...

    def fill(self, value: Any) -> None:
        """Set every element."""
        ...

    def copy(self) -> Any:
        """A copy."""
        ...

    def transpose(self, axes: object) -> object:
        """The same elements with the axes in another order."""
        ...

    def ravel(self, order: object = ...) -> object:
        """The elements in one row."""
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

"""Views of arrays that are indexed, transposed and flipped without I/O, and read or written in one request (``array.lazy``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import TYPE_CHECKING, Literal, cast

import numpy as np

from tessarr.indexing import request as requests
from tessarr.indexing.base import Request
from tessarr.types import AnyArray, AnyDType, Fields, OutputLike, Selected, SelectionLike, Shape, ValuesLike

if TYPE_CHECKING:
    import numpy.typing as npt
    from typing_extensions import CapsuleType

    from tessarr.core.array import Array
    from tessarr.indexing.transform import IndexTransform


class Exported:
    """Where elements are read to, and their exchange by DLPack (array API standard): base of `Array` and `View`."""

    __slots__ = ()

    @property
    def device(self) -> str:
        """Where elements are read to: always ``"cpu"``."""
        return "cpu"

    def __dlpack__(
        self,
        *,
        stream: None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> CapsuleType:
        """Read the elements, and export them; the arguments are those of ``numpy.ndarray.__dlpack__``."""
        if copy is False:
            raise BufferError("elements are read into new memory, so that copy=False is not possible")
        given = {"stream": stream, "max_version": max_version, "dl_device": dl_device, "copy": copy}
        export = cast("Callable[..., CapsuleType]", np.asarray(self).__dlpack__)
        return export(**{name: value for name, value in given.items() if value is not None})

    def __dlpack_device__(self) -> tuple[Literal[1], Literal[0]]:
        """Return the device, the CPU: ``(1, 0)``."""
        return (1, 0)


class View(Exported):
    """A part of an array in another arrangement: which elements, in which order of axes. Made by ``array.lazy`` without I/O.

    Indexing a view gives a view. `read`, ``numpy.asarray`` and functions of NumPy read its elements into memory, in one
    request; `write` and assignment write them. A view holds the array, not a copy of elements: it reads what is stored when
    it is read.

    >>> import numpy as np
    >>> import tessarr
    >>> z = tessarr.array(np.arange(24).reshape(4, 6))
    >>> v = z.lazy[:, ::-2].T[1]
    >>> v
    <View of / (4,) int64>
    >>> v.read().tolist()
    [3, 9, 15, 21]
    >>> v[1:] = 0
    >>> z[:, 3].tolist()
    [3, 0, 0, 0]

    Source: TensorStore, "Index transforms"; array API standard, "Manipulation functions", for the names.
    """

    __slots__ = ("_array", "_fields", "_transform")

    def __init__(self, array: Array, transform: IndexTransform, fields: Fields = None) -> None:
        """View `array` through `transform`; `fields`: of a structured data type, one name or several."""
        self._array = array
        self._transform = transform
        self._fields = fields

    # -- facts ---------------------------------------------------------------------------------------------------------

    @property
    def array(self) -> Array:
        """The array whose elements these are."""
        return self._array

    @property
    def shape(self) -> Shape:
        """The lengths of the view's axes."""
        return self._transform.shape

    @property
    def ndim(self) -> int:
        """The number of the view's axes."""
        return len(self.shape)

    @property
    def dtype(self) -> AnyDType:
        """NumPy's dtype of the elements."""
        whole = self._array.dtype
        return whole if self._fields is None else whole[self._fields]

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        """The size in bytes of the elements in memory."""
        return self.size * self.dtype.itemsize

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a 0-d view")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<View of {self._array.name} {self.shape} {self.dtype}>"

    # -- views of the view ---------------------------------------------------------------------------------------------

    def __getitem__(self, selection: SelectionLike) -> View:
        """Select as ``array[selection]`` does, without reading; ``None`` adds an axis of length 1.

        Raises `ArrayIndexError`, also its subclass `BoundsCheckError`; `FieldNotFoundError` for unknown field names.
        """
        fields, selection = requests.pop_fields(selection)
        if fields:
            self._array._check_fields([fields] if isinstance(fields, str) else fields)
            if self._fields is not None:
                self.dtype[fields]
        return View(self._array, self._transform.select(selection), fields or self._fields)

    @property
    def oindex(self) -> LazyIndex:
        """Orthogonal indexing: each axis by its own index."""
        return LazyIndex(self, requests.orthogonal)

    @property
    def vindex(self) -> LazyIndex:
        """Point indexing: one coordinate array per axis, or a mask of the view's shape."""
        return LazyIndex(self, requests.vindex)

    @property
    def T(self) -> View:  # noqa: N802 - the array API's name
        """The view with its axes in reverse order."""
        return self.transpose()

    @property
    def mT(self) -> View:  # noqa: N802 - the array API's name
        """The view with its last two axes exchanged. Raises `ValueError` for fewer axes."""
        if self.ndim < 2:
            raise ValueError(f"mT needs at least two axes, the view has {self.ndim}")
        return self.transpose(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    def transpose(self, *axes: int | Sequence[int]) -> View:
        """Put the axes in the order `axes`, given singly or as one sequence; without arguments reversed.

        Raises `ValueError` unless `axes` is a permutation.
        """
        order = [one for some in axes for one in ([some] if isinstance(some, int) else some)]
        return self._with(self._transform.transpose(order if axes else range(self.ndim)[::-1]))

    def permute_dims(self, axes: Sequence[int]) -> View:
        """Put the axes in the order `axes` (array API standard)."""
        return self.transpose(*axes)

    def moveaxis(self, source: int, destination: int) -> View:
        """Move the axis `source` to `destination`, the others keep their order."""
        axes = list(range(self.ndim))
        axes.insert(range(self.ndim)[destination], axes.pop(source))
        return self.transpose(*axes)

    def expand_dims(self, axis: int = 0) -> View:
        """Add an axis of length 1, so that it is the axis `axis` of the result. Raises `IndexError` beyond the axes."""
        at = range(self.ndim + 1)[axis]
        return self[(*(slice(None),) * at, None)]

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> View:
        """Drop axes of length 1: those named, or all. Raises `ValueError` for an axis of another length."""
        named = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = {range(self.ndim)[one] for one in named}
        for one in axes:
            if self.shape[one] != 1 and axis is not None:
                raise ValueError(f"axis {one} has length {self.shape[one]}; only axes of length 1 can be dropped")
        drop = [one in axes and length == 1 for one, length in enumerate(self.shape)]
        return self[tuple(0 if one else slice(None) for one in drop)]

    def flip(self, axis: int | tuple[int, ...] | None = None) -> View:
        """Reverse the order of elements along `axis`; along all axes when ``None``."""
        named = range(self.ndim) if axis is None else (axis,) if isinstance(axis, int) else axis
        axes = {range(self.ndim)[one] for one in named}
        return self[tuple(slice(None, None, -1 if one in axes else 1) for one in range(self.ndim))]

    def _with(self, transform: IndexTransform) -> View:
        return View(self._array, transform, self._fields)

    # -- elements ------------------------------------------------------------------------------------------------------

    def read(self, *, out: OutputLike | None = None) -> Selected:
        """Read the elements into a new NumPy array (a scalar of a 0-d view); with `out`, fill and return `out`.

        `out`: of the view's shape and dtype, owned by the caller; see `Array.read`. Raises `BoundsCheckError` when the array
        was made shorter than the view, `CodecError`, `StoreError`.
        """
        return self._array._get(lambda bound: self._transform.as_request(bound.shape), out, self._fields)

    async def read_async(self, *, out: OutputLike | None = None) -> Selected:
        """Read as `read` does, without blocking the event loop."""
        return await self._array._get_async(lambda bound: self._transform.as_request(bound.shape), out, self._fields)

    def write(self, value: ValuesLike) -> None:
        """Write `value`, broadcast as in NumPy's assignment; where the view repeats an element the last value wins.

        Raises `ReadOnlyError`, `ValueError` for a shape that does not fit, `BoundsCheckError`, `StoreError`.
        """
        self._array._put(lambda bound: self._transform.as_request(bound.shape), value, self._fields)

    async def write_async(self, value: ValuesLike) -> None:
        """Write as `write` does, without blocking the event loop."""
        await self._array._put_async(lambda bound: self._transform.as_request(bound.shape), value, self._fields)

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        self[selection].write(value)

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        """Read the elements. Raises `ValueError` for ``copy=False``: there is nothing in memory to share."""
        if copy is False:
            raise ValueError("a view's elements are read into new memory, so that copy=False is not possible")
        elements = self._array._without_mask(self.read())
        return elements if dtype is None else elements.astype(dtype, copy=False)


class LazyIndex:
    """Give ``view.oindex`` and ``view.vindex`` their indexing semantics."""

    __slots__ = ("_plan", "_view")

    def __init__(self, view: View, plan: Callable[[object, Shape], Request]) -> None:
        self._view = view
        self._plan = plan

    def __getitem__(self, selection: SelectionLike) -> View:
        view = self._view
        return view._with(view._transform.request(lambda shape: self._plan(selection, shape)))

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        self[selection].write(value)

"""Read and write selections of an array: indexing with brackets, and the methods for each kind of selection.

Every method here turns its selection into a `Request` (pure), lets the array's engine fill or store a NumPy array, and gives
the result the shape of the request. `Array` inherits them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tessarr.common.output import Output, output_of, too_large
from tessarr.core import open_transactions
from tessarr.core.array_parts.chunk_properties import ChunkProperties
from tessarr.dtypes.element import converted
from tessarr.engine.bound import BoundArray
from tessarr.errors import FieldNotFoundError, ReadOnlyError, VindexInvalidSelectionError
from tessarr.indexing import request as requests
from tessarr.indexing.base import Request
from tessarr.types import AnyArray, AnyDType, Fields, OutputLike, Selected, SelectionLike, ValuesLike

if TYPE_CHECKING:
    import numpy.typing as npt

Plan: TypeAlias = "Callable[[BoundArray], Request]"
"""Makes the request for one bound array. The bound array is read once per call, so that a concurrent resize by another thread
changes neither the request nor the array that serves it."""


class SelectionMethods(ChunkProperties):
    """Read and write an array by selection. Base of `Array`."""

    # -- brackets --------------------------------------------------------------------------------------------------

    def __getitem__(self, selection: SelectionLike) -> Selected:
        """Read the selected elements into a new NumPy array (a scalar when every axis is dropped).

        Elements that may be missing (data type ``optional``) are read as a `numpy.ma.MaskedArray`.

        Integers, slices with any step, Ellipsis, masks and integer arrays are interpreted as by zarr-python where
        zarr-python supports them, and as by NumPy elsewhere; field names select fields of a structured type.

        Raises `ArrayIndexError`, `CodecError`, `StoreError`.
        """
        bound = self._bound
        if type(selection) is tuple and selection and selection[-1].__class__ is selection[0].__class__ is int:
            # Programs read single elements in loops, where planning a request would cost several times the read.
            value = self._engine.element(bound, selection)
            if value is not None:
                return value
        fields, request = requests.with_fields(selection, bound.shape)
        if fields:
            return self._get(lambda bound: requests.with_fields(selection, bound.shape)[1], None, fields)
        try:
            full = np.ndarray(request.full_shape, bound.dtype, None, 0, None, self._order)  # see `_full`
        except ValueError as error:
            raise too_large(request.full_shape, bound.dtype) from error
        self._engine.read(bound, request.selection, full)
        result = request.result(full)
        if bound.may_be_missing:
            result = bound.metadata.data_type.show(result)
        return result if request.shape else result[()]

    def __setitem__(self, selection: SelectionLike, value: ValuesLike) -> None:
        """Write `value`, broadcast as in NumPy's assignment, to the selected elements.

        Where they may be missing, ``None``, ``numpy.ma.masked`` and what a masked array masks are written as missing.

        Raises `ArrayIndexError`, `ReadOnlyError`, `ValueError` for a shape that does not fit, `StoreError`.
        """
        bound = self._bound
        fields, request = requests.with_fields(selection, bound.shape)
        if fields:
            self._put_fields(bound, request, value, fields)
            return
        self._engine.write(bound, request.selection, self._prepared(request, value))

    def read(self, selection: SelectionLike = Ellipsis, *, out: OutputLike | None = None) -> Selected:
        """Read `selection` as ``array[selection]`` does; with `out`, fill and return `out`.

        `out`: of the result's shape and the array's dtype, owned by the caller: a NumPy array, a writable buffer (of so many
        bytes), or a tensor with DLPack, also on a device, to which elements are copied from pinned memory.
        """
        fields, selection = requests.pop_fields(selection)
        return self._get(lambda bound: requests.getitem(selection, bound.shape), out, fields)

    async def read_async(self, selection: SelectionLike = Ellipsis, *, out: OutputLike | None = None) -> Selected:
        fields, selection = requests.pop_fields(selection)
        return await self._get_async(lambda bound: requests.getitem(selection, bound.shape), out, fields)

    def write(self, selection: SelectionLike, value: ValuesLike) -> None:
        """Write `value` to `selection` as ``array[selection] = value`` does."""
        self[selection] = value

    async def write_async(self, selection: SelectionLike, value: ValuesLike) -> None:
        fields, selection = requests.pop_fields(selection)
        await self._put_async(lambda bound: requests.getitem(selection, bound.shape), value, fields)

    # -- the five selections -----------------------------------------------------------------------------------------

    def get_basic_selection(
        self,
        selection: SelectionLike = Ellipsis,
        *,
        out: OutputLike | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Selected:
        """Read by integers, slices and Ellipsis. `out` (shape of the result, the array's dtype) is filled and returned.

        `prototype` is accepted for compatibility with zarr-python and has no effect, here and in the methods below.
        """
        return self._get(lambda bound: requests.basic(selection, bound.shape), out, fields)

    async def get_basic_selection_async(
        self, selection: SelectionLike = Ellipsis, *, out: OutputLike | None = None, fields: Fields = None
    ) -> Selected:
        return await self._get_async(lambda bound: requests.basic(selection, bound.shape), out, fields)

    def set_basic_selection(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write by integers, slices and Ellipsis."""
        self._put(lambda bound: requests.basic(selection, bound.shape), value, fields)

    async def set_basic_selection_async(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None
    ) -> None:
        await self._put_async(lambda bound: requests.basic(selection, bound.shape), value, fields)

    def get_orthogonal_selection(
        self,
        selection: SelectionLike,
        *,
        out: OutputLike | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Selected:
        """Read the outer product of one integer, slice, integer array or mask per axis."""
        return self._get(lambda bound: requests.orthogonal(selection, bound.shape), out, fields)

    async def get_orthogonal_selection_async(
        self, selection: SelectionLike, *, out: OutputLike | None = None, fields: Fields = None
    ) -> Selected:
        return await self._get_async(lambda bound: requests.orthogonal(selection, bound.shape), out, fields)

    def set_orthogonal_selection(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write to the outer product of one selection per axis."""
        self._put(lambda bound: requests.orthogonal(selection, bound.shape), value, fields)

    async def set_orthogonal_selection_async(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None
    ) -> None:
        await self._put_async(lambda bound: requests.orthogonal(selection, bound.shape), value, fields)

    def get_coordinate_selection(
        self,
        selection: SelectionLike,
        *,
        out: OutputLike | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Selected:
        """Read points: their coordinates are one integer array per axis, broadcast against each other."""
        return self._get(lambda bound: requests.coordinate(selection, bound.shape), out, fields)

    async def get_coordinate_selection_async(
        self, selection: SelectionLike, *, out: OutputLike | None = None, fields: Fields = None
    ) -> Selected:
        return await self._get_async(lambda bound: requests.coordinate(selection, bound.shape), out, fields)

    def set_coordinate_selection(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write to points; of repeated points the last value wins."""
        self._put(lambda bound: requests.coordinate(selection, bound.shape), value, fields)

    async def set_coordinate_selection_async(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None
    ) -> None:
        await self._put_async(lambda bound: requests.coordinate(selection, bound.shape), value, fields)

    def get_mask_selection(
        self,
        mask: npt.NDArray[np.bool_],
        *,
        out: OutputLike | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Selected:
        """Read the elements where `mask`, of the array's shape, is true, as a 1-d array in C order."""
        return self._get(lambda bound: requests.mask(mask, bound.shape), out, fields)

    async def get_mask_selection_async(
        self, mask: npt.NDArray[np.bool_], *, out: OutputLike | None = None, fields: Fields = None
    ) -> Selected:
        return await self._get_async(lambda bound: requests.mask(mask, bound.shape), out, fields)

    def set_mask_selection(
        self, mask: npt.NDArray[np.bool_], value: ValuesLike, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write where `mask` is true."""
        self._put(lambda bound: requests.mask(mask, bound.shape), value, fields)

    async def set_mask_selection_async(
        self, mask: npt.NDArray[np.bool_], value: ValuesLike, *, fields: Fields = None
    ) -> None:
        await self._put_async(lambda bound: requests.mask(mask, bound.shape), value, fields)

    def get_block_selection(
        self,
        selection: SelectionLike,
        *,
        out: OutputLike | None = None,
        prototype: object = None,
        fields: Fields = None,
    ) -> Selected:
        """Read whole chunks (with shards: whole shards), by integers and slices of the chunk grid."""
        return self._get(lambda bound: requests.block(selection, bound.axes), out, fields)

    async def get_block_selection_async(
        self, selection: SelectionLike, *, out: OutputLike | None = None, fields: Fields = None
    ) -> Selected:
        return await self._get_async(lambda bound: requests.block(selection, bound.axes), out, fields)

    def set_block_selection(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None, prototype: object = None
    ) -> None:
        """Write whole blocks."""
        self._put(lambda bound: requests.block(selection, bound.axes), value, fields)

    async def set_block_selection_async(
        self, selection: SelectionLike, value: ValuesLike, *, fields: Fields = None
    ) -> None:
        await self._put_async(lambda bound: requests.block(selection, bound.axes), value, fields)

    def get_point_selection(self, selection: SelectionLike) -> Selected:
        """Read points by a mask or coordinate arrays, as `vindex` does."""
        return self._get(self._points(selection), None, None)

    async def get_point_selection_async(self, selection: SelectionLike) -> Selected:
        return await self._get_async(self._points(selection), None, None)

    def set_point_selection(self, selection: SelectionLike, value: ValuesLike) -> None:
        """Write by a mask or coordinate arrays."""
        self._put(self._points(selection), value, None)

    async def set_point_selection_async(self, selection: SelectionLike, value: ValuesLike) -> None:
        await self._put_async(self._points(selection), value, None)

    # -- steps shared by these methods -----------------------------------------------------------------------------------

    def _points(self, selection: SelectionLike) -> Plan:
        fields, selection = requests.pop_fields(selection)
        if fields:
            raise VindexInvalidSelectionError("field names are not part of a point selection", got=fields)
        items = selection if isinstance(selection, tuple) else (selection,)
        first = np.asarray(items[0]) if len(items) == 1 else None
        if first is not None and first.dtype.kind == "b" and first.shape == self.shape:
            return lambda bound: requests.mask(first, bound.shape)
        if any(item is None or isinstance(item, slice) or item is Ellipsis for item in items):
            raise VindexInvalidSelectionError(
                "a point selection is one integer array per axis, or a mask",
                got=selection,
                hint="See oindex for slices",
            )
        return lambda bound: requests.coordinate(selection, bound.shape)

    def _full(self, request: Request, out: AnyArray | None, fields: Fields) -> tuple[AnyArray, bool]:
        """Return the array for the engine to fill, and whether that array is a view of `out`."""
        if fields:
            self._check_fields([fields] if isinstance(fields, str) else fields)
        if out is not None:
            if out.shape != request.shape:
                raise ValueError(f"out has shape {out.shape}; the selection has shape {request.shape}")
            shows_mask = self._bound.may_be_missing and isinstance(out, np.ma.MaskedArray)
            if self._bound.may_be_missing and out.dtype != self._bound.dtype and not shows_mask:
                raise TypeError("elements may be missing: out must be a numpy.ma.MaskedArray")
            fits = out.dtype == self._bound.dtype and not fields and not shows_mask
            view = request.view(out) if fits else None
            if view is not None and view.flags.writeable:
                return view, True
        # `np.empty` would lose the byte order, and the multiple, of times without a unit.
        try:
            return np.ndarray(request.full_shape, self._bound.dtype, None, 0, None, self._order), False
        except ValueError as error:
            raise too_large(request.full_shape, self._bound.dtype) from error

    def _finish(self, request: Request, full: AnyArray, direct: bool, out: AnyArray | None, fields: Fields) -> Selected:
        if direct:
            return out
        result = request.result(full)
        if fields:
            result = result[fields]
        if out is not None:
            hidden = out.dtype == full.dtype and not isinstance(out, np.ma.MaskedArray)
            out[...] = result if hidden or not self._bound.may_be_missing else self._metadata.data_type.show(result)
            return out
        result = self._metadata.data_type.show(result)
        return result if request.shape else result[()]

    def _get(self, plan: Plan, out: OutputLike | None, fields: Fields) -> Selected:
        bound = self._bound
        request = plan(bound)
        output = None if out is None else output_of(out, request.shape, bound.dtype)
        target = None if output is None else output.array
        full, direct = self._full(request, target, fields)
        self._engine.read(bound, request.selection, full)
        result = self._finish(request, full, direct, target, fields)
        return result if output is None else _delivered(output, out)

    async def _get_async(self, plan: Plan, out: OutputLike | None, fields: Fields) -> Selected:
        bound = self._bound
        request = plan(bound)
        output = None if out is None else output_of(out, request.shape, bound.dtype)
        target = None if output is None else output.array
        full, direct = self._full(request, target, fields)
        await self._engine.read_async(bound, request.selection, full)
        result = self._finish(request, full, direct, target, fields)
        return result if output is None else _delivered(output, out)

    def _prepared(self, request: Request, value: object) -> AnyArray:
        """Convert `value` to the array's dtype, and broadcast it to the selection. Raises `ReadOnlyError`."""
        bound = self._bound
        if open_transactions.overlays:
            open_transactions.refuse_outside(bound.store, bound.path)
        if bound.read_only is not None:
            raise ReadOnlyError(
                f"the array is read-only: {bound.read_only}", store=bound.store.url, path=f"/{bound.path}"
            )
        if bound.metadata.is_corrected and 0 not in request.shape:
            self._correct_stored_grid()
        if bound.may_be_missing:
            return request.value(self._as_elements(value, bound.dtype))
        as_cells = bound.dtype.kind == "O"
        return request.value(cells(value, len(request.shape)) if as_cells else as_elements(value, bound.dtype))

    def _correct_stored_grid(self) -> None:
        """Store the corrected document, by which the chunks that are about to be written will be found."""
        from tessarr.core.asynchronous.sans_io import run_steps
        from tessarr.core.stored import metadata_io

        run_steps(metadata_io.correct_chunk_grid_steps(self._store, self._path, self._metadata))
        self._adopt(self._metadata.with_(is_corrected=False))

    def _as_elements(self, value: object, dtype: AnyDType) -> AnyArray:
        """Convert `value` to elements of `dtype`, as engines hold them."""
        if not self._metadata.data_type.may_be_missing:
            return as_elements(value, dtype)
        from tessarr.dtypes.optional import unmasked

        return unmasked(_read_if_stored(value), self._metadata.dtype)

    def _without_mask(self, values: Selected) -> AnyArray:
        """Return what was read as a NumPy array. Raises `ValueError` where elements are missing."""
        if not self._metadata.data_type.may_be_missing:
            return np.asarray(values)
        from tessarr.dtypes.optional import complete

        return complete(values)

    def _check_fields(self, names: list[str]) -> None:
        there = None if self._bound.may_be_missing else self._bound.dtype.names
        unknown = [name for name in names if name not in (there or ())]
        if unknown:
            expected = "a selection; the data type has no fields" if there is None else f"one of {there}"
            raise FieldNotFoundError("no such field", expected=expected, got=unknown)

    def _put_fields(self, bound: BoundArray, request: Request, value: object, fields: str | list[str]) -> None:
        """Write fields: one field from an array of its type, several from a structured array with these fields."""
        from tessarr.engine.reference.merge import ChunkWrites
        from tessarr.engine.write_chunks import store_chunks

        names = [fields] if isinstance(fields, str) else fields
        dtype = bound.dtype
        self._check_fields(names)
        self._prepared(request, np.empty((), dtype))  # runs the checks of every write
        whole = np.empty(request.full_shape, dtype)
        for name in names:
            request.result(whole)[name] = value if len(names) == 1 else np.asarray(value)[name]
        store_chunks(bound, ChunkWrites(bound, request.selection, whole, names))

    def _put(self, plan: Plan, value: object, fields: Fields) -> None:
        bound = self._bound
        request = plan(bound)
        if fields:
            self._put_fields(bound, request, value, fields)
        else:
            self._engine.write(bound, request.selection, self._prepared(request, value))

    async def _put_async(self, plan: Plan, value: object, fields: Fields) -> None:
        bound = self._bound
        request = plan(bound)
        if fields:
            import asyncio

            await asyncio.to_thread(self._put_fields, bound, request, value, fields)
        else:
            if bound.metadata.is_corrected:
                import asyncio

                values = await asyncio.to_thread(self._prepared, request, value)
            else:
                values = self._prepared(request, value)
            await self._engine.write_async(bound, request.selection, values)


def _read_if_stored(value: object) -> object:
    """Read a stored array or a view of one, of which NumPy would not see the mask."""
    from tessarr.core.array_parts.lazy_view import Exported

    return value.read() if isinstance(value, Exported) else value  # type: ignore[attr-defined] # an Array or a View


def as_elements(value: object, dtype: AnyDType) -> AnyArray:
    """Convert `value` to an array of `dtype` as NumPy's assignment does. Copies only where the dtype changes."""
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "__array__"):
        return converted(np.asarray(value), dtype)
    return np.asarray(value, dtype)


def cells(value: object, ndim: int) -> AnyArray:
    """Convert `value` to an array of objects for a selection of `ndim` axes; an object may be an array or a list itself."""
    if ndim == 0 or not (hasattr(value, "__array__") or isinstance(value, list | tuple)):
        cell = np.empty((), object)
        cell[()] = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
        return cell
    if ndim == 1 and isinstance(value, list | tuple):  # np.asarray would make two axes of rows of equal length
        row = np.empty(len(value), object)
        for i, item in enumerate(value):
            row[i] = item
        return row
    return np.asarray(value).astype(object, copy=False) if hasattr(value, "__array__") else np.asarray(value, object)


def _delivered(output: Output, out: object) -> Selected:
    """Copy elements to the device, where `out` is there. Returns `out`; of a buffer of zarr-python the array."""
    if output.deliver is not None:
        output.deliver()
    return output.array if hasattr(out, "as_ndarray_like") else out

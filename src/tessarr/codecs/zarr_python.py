"""Codecs of other packages, written for zarr-python and found by its entry-point group ``zarr.codecs``, as codecs of tessarr.

An entry ``example.xor = my_package:XorCodec`` gives a subclass of `ArrayArrayCodec`, `ArrayBytesCodec` or `BytesBytesCodec`
of ``zarr.abc.codec``. Its ``_encode_sync`` and ``_decode_sync`` are called, or its coroutines ``_encode_single`` and
``_decode_single`` in zarr-python's event loop. A class that already implements tessarr's contract is used as it is.

Limits: only whole chunks are decoded. A bytes → bytes codec gets the spec of a chunk of single bytes. After a ``fork`` only
codecs with ``_decode_sync`` work, because zarr-python's event loop does not survive it.

Source: `zarr.abc.codec` and `zarr.registry` of zarr-python 3.1 to 3.4.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Protocol, Self, cast

import numpy as np

from tessarr.codecs.base import ArrayToArray, ArrayToBytes, BytesToBytes, ChunkSpec, Codec
from tessarr.codecs.raw import flat_bytes
from tessarr.dtypes.named import from_v3
from tessarr.dtypes.numeric import UInt8
from tessarr.errors import CodecError, MetadataValidationError, MissingDependencyError, Problem
from tessarr.types import JSON, AnyArray, Buffer, JSONObject


class _DType(Protocol):
    def to_json(self, zarr_format: int) -> JSON: ...


class _Value(Protocol):
    """A buffer of zarr-python, of bytes or elements."""

    def as_numpy_array(self) -> AnyArray: ...


class _Buffers(Protocol):
    def from_array_like(self, array: object) -> _Value: ...

    def from_numpy_array(self, array: object) -> _Value: ...


class _Prototype(Protocol):
    buffer: _Buffers
    nd_buffer: _Buffers


class _Spec(Protocol):
    """An ``ArraySpec`` of zarr-python."""

    shape: tuple[int, ...]
    dtype: _DType
    fill_value: object
    prototype: _Prototype


class _Contract(Protocol):
    """A codec of zarr-python's contract, ``_encode_…`` and ``_decode_…`` excluded."""

    def to_dict(self) -> object: ...

    def evolve_from_array_spec(self, array_spec: _Spec) -> _Contract: ...

    def resolve_metadata(self, chunk_spec: _Spec) -> _Spec: ...

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: _Spec) -> int: ...


class _ContractClass(Protocol):
    __name__: str
    __module__: str

    def from_dict(self, data: dict[str, object]) -> _Contract: ...


def load(name: str, value: str, package: str) -> type[Codec]:
    """Return the class that reads codec `name`: entry ``"module:Class"`` of `package`, adapted where it must be.

    Raises `MissingDependencyError` when the module cannot be imported, for whatever reason, or has no codec there.
    """
    module, _, attribute = value.partition(":")
    try:
        theirs: object = importlib.import_module(module)
        for part in attribute.split("."):
            theirs = getattr(theirs, part)
    except Exception as error:  # a package may fail in any way while it is imported
        raise MissingDependencyError(
            f"codec {name!r} of the package {package!r} cannot be loaded from {value}: {type(error).__name__}: {error}",
            codec=name,
            hint=f"Repair or update {package!r}, and install zarr-python, for which its codecs are written",
        ) from error
    return adapted(name, theirs)


@cache
def adapted(name: str, theirs: object) -> type[Codec]:
    """Return `theirs`, a codec class of either contract, as a class of tessarr's that documents call `name`.

    Raises `MissingDependencyError` for a class that is not a codec.
    """
    if isinstance(theirs, type) and issubclass(theirs, Codec):
        return theirs if theirs.from_dict.__func__ is Codec.from_dict.__func__ else _by_dict(name, theirs)  # type: ignore[attr-defined]
    from zarr.abc import codec

    kinds: tuple[tuple[type, type[_Theirs]], ...] = (
        (codec.ArrayArrayCodec, _ArrayToArray),
        (codec.ArrayBytesCodec, _ArrayToBytes),
        (codec.BytesBytesCodec, _BytesToBytes),
    )
    for kind, ours in kinds:
        if isinstance(theirs, type) and issubclass(theirs, kind):
            members = {"name": name, "theirs": theirs, "__module__": theirs.__module__}
            return cast("type[Codec]", type(theirs.__name__, (ours,), members))
    raise MissingDependencyError(
        f"codec {name!r} is {theirs!r}", expected="a codec class of zarr.abc.codec", codec=name
    )


def _by_dict(name: str, theirs: type[Codec]) -> type[Codec]:
    """Make tessarr's own methods of ``from_dict`` and ``to_dict``, which get the whole JSON object, as in zarr-python."""

    def from_json(cls: type[Codec], configuration: Mapping[str, JSON]) -> Codec:
        return cls.from_dict(cast("Mapping[str, JSON]", _whole(name, configuration)))

    def to_json(self: Codec) -> JSONObject:
        return _object(self.to_dict())

    def equals(self: Codec, other: object) -> bool:
        return self.to_dict() == other.to_dict() if isinstance(other, theirs) else NotImplemented

    def reduce(self: Codec) -> tuple[object, ...]:
        return _restore_by_dict, (name, theirs, self.to_dict())

    methods = {"from_json": classmethod(from_json), "to_json": to_json, "registered_name": name}
    value = {"__eq__": equals, "__hash__": theirs.__hash__, "__reduce__": reduce, "__module__": theirs.__module__}
    return type(theirs.__name__, (theirs,), methods | value)


def _restore_by_dict(name: str, theirs: type, data: Mapping[str, JSON]) -> Codec:
    return adapted(name, theirs).from_dict(data)


def _whole(name: str, configuration: Mapping[str, JSON]) -> dict[str, object]:
    return {"name": name, **({"configuration": dict(configuration)} if configuration else {})}


def _object(json: object) -> JSONObject:
    """The object form of a codec's JSON, of which members may be enumerations."""
    return cast("JSONObject", {"name": json} if isinstance(json, str) else _plain(json))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _plain(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in value]
    return value.value if isinstance(value, Enum) else value


@dataclass(frozen=True)
class _Theirs(Codec):
    """A codec of zarr-python's contract. Subclasses name the class."""

    codec: _Contract
    theirs: ClassVar[_ContractClass]

    @property
    def is_foreign(self) -> bool:
        return True

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        try:
            return cls(cls.theirs.from_dict(_whole(cls.name, configuration)))
        except (TypeError, ValueError, KeyError) as error:
            problem = Problem((), "value", f"{cls.theirs.__module__}.{cls.theirs.__name__} refuses it: {error}")
            raise MetadataValidationError("invalid codec", [problem]) from error

    def to_json(self) -> JSONObject:
        return _object(self.codec.to_dict())

    def fit(self, spec: ChunkSpec) -> Self:
        return type(self)(self.codec.evolve_from_array_spec(_array_spec(spec, self.name)))

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.name, self.theirs, self.codec)

    def _run(self, which: str, value: _Value, spec: _Spec) -> AnyArray:
        codec = self.codec.evolve_from_array_spec(spec)
        at_once = getattr(codec, f"_{which}_sync", None)
        if at_once is not None:
            made: _Value | None = at_once(value, spec)
        else:
            from zarr.core.sync import sync

            made = sync(getattr(codec, f"_{which}_single")(value, spec))
        if made is None:
            hint = "tessarr supports no codec that drops chunks"
            raise CodecError(f"the codec {which}d a chunk to None", codec=self.name, hint=hint)
        return made.as_numpy_array()

    def _size(self, nbytes: int | None, spec: _Spec) -> int | None:
        try:
            return None if nbytes is None else int(self.codec.compute_encoded_size(nbytes, spec))
        except NotImplementedError:
            return None


def _restore(name: str, theirs: type, codec: _Contract) -> Codec:
    return cast("type[_Theirs]", adapted(name, theirs))(codec)


class _ArrayToArray(_Theirs, ArrayToArray):
    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        given = _array_spec(spec, self.name)
        made = self.codec.evolve_from_array_spec(given).resolve_metadata(given)
        if made.dtype == given.dtype:
            return spec.with_(shape=tuple(made.shape))
        data_type = from_v3(made.dtype.to_json(zarr_format=3))
        return ChunkSpec(tuple(made.shape), data_type, data_type.cast_fill(made.fill_value))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        given = _array_spec(spec, self.name)
        return self._run("encode", _elements(chunk, spec, given), given)

    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        given = _array_spec(spec, self.name)
        encoded = self.encoded_spec(spec)
        return _shaped(self._run("decode", _elements(chunk, encoded, given), given), spec, self.name)


class _ArrayToBytes(_Theirs, ArrayToBytes):
    def encoded_size(self, spec: ChunkSpec) -> int | None:
        return self._size(spec.nbytes, _array_spec(spec, self.name))

    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        given = _array_spec(spec, self.name)
        return flat_bytes(self._run("encode", _elements(chunk, spec, given), given))

    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        given = _array_spec(spec, self.name)
        return _shaped(self._run("decode", _bytes(data, given), given), spec, self.name)


class _BytesToBytes(_Theirs, BytesToBytes):
    def encoded_size(self, nbytes: int) -> int | None:
        return self._size(nbytes, _row_of_bytes(nbytes))

    def encode(self, data: Buffer) -> Buffer:
        given = _row_of_bytes(memoryview(data).nbytes)
        return flat_bytes(self._run("encode", _bytes(data, given), given))

    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        given = _row_of_bytes(nbytes or 0)
        made = flat_bytes(self._run("decode", _bytes(data, given), given))
        if nbytes is not None and made.nbytes != nbytes:
            expected, got = f"{nbytes} bytes", f"{made.nbytes} bytes"
            raise CodecError("decoded data has the wrong size", codec=self.name, expected=expected, got=got)
        return made


# -- zarr-python's objects ---------------------------------------------------------------------------------------------


def _array_spec(spec: ChunkSpec, codec: str) -> _Spec:
    """Describe a chunk to zarr-python. Raises `CodecError` for a data type that it does not have."""
    from zarr.core import array_spec, buffer, dtype

    if TYPE_CHECKING:
        from zarr.core.dtype.common import DTypeJSON

    json = cast("DTypeJSON", spec.data_type.to_json())
    try:
        data_type = dtype.get_data_type_from_json(json, zarr_format=3)
    except ValueError as error:
        hint = "The codec is written for zarr-python, which does not know this data type"
        raise CodecError(f"no data type of zarr-python for {spec.data_type!r}", codec=codec, hint=hint) from error
    config = array_spec.ArrayConfig.from_dict({})
    made = array_spec.ArraySpec(spec.shape, data_type, spec.fill[()], config, buffer.default_buffer_prototype())
    return cast("_Spec", made)


def _row_of_bytes(nbytes: int) -> _Spec:
    element = UInt8()
    return _array_spec(ChunkSpec((nbytes,), element, element.default_fill()), "")


def _elements(chunk: AnyArray, spec: ChunkSpec, given: _Spec) -> _Value:
    return given.prototype.nd_buffer.from_numpy_array(np.asarray(chunk, spec.dtype))


def _bytes(data: Buffer, given: _Spec) -> _Value:
    return given.prototype.buffer.from_array_like(flat_bytes(data))


def _shaped(made: AnyArray, spec: ChunkSpec, codec: str) -> AnyArray:
    if made.shape != spec.shape:
        raise CodecError("a decoded chunk has the wrong shape", codec=codec, expected=spec.shape, got=made.shape)
    return made

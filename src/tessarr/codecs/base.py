"""The contract of a codec, and the description of a chunk that codecs work on.

Three kinds: array → array, array → bytes, bytes → bytes. A codec is an immutable value made from its JSON
(`from_json`), completed once for the chunks of an array (`fit`), checked once (`encoded_spec`, `encoded_size`), and then
only encodes and decodes. Codecs know no store, key, event loop or thread; every method may be called from several
threads at once.

Source: Zarr v3.1 core, "Codecs"; the kinds and the order of a chain are described in `tessarr.codecs.chain`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, ClassVar, Literal, Protocol, Self

from tessarr.common.to_from_dict import FromDict
from tessarr.dtypes.base import DataType, Scalar
from tessarr.types import JSON, AnyArray, AnyDType, Buffer, JSONObject, Shape

Kind = Literal["array_to_array", "array_to_bytes", "bytes_to_bytes"]


@dataclass(frozen=True, slots=True)
class ChunkSpec:
    """Describe a chunk to codecs: its shape, element type and fill value."""

    shape: Shape
    data_type: DataType
    fill: Scalar
    """0-d, dtype ``data_type.dtype``."""
    dtype: AnyDType = field(init=False, repr=False, compare=False)
    """The NumPy dtype in memory."""
    nbytes: int | None = field(init=False, repr=False, compare=False)
    """Exact size of the chunk as raw elements; ``None`` for variable-length types."""

    def __post_init__(self) -> None:
        itemsize = self.data_type.itemsize
        object.__setattr__(self, "dtype", self.data_type.dtype)
        object.__setattr__(self, "nbytes", None if itemsize is None else itemsize * prod(self.shape))

    def with_(self, **changes: Any) -> ChunkSpec:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)


class _ZarrPythonSpec(Protocol):
    """The ``ArraySpec`` of a chunk in zarr-python's contract, which knows the buffers of that contract."""

    def _encode_by(self, codec: Codec, data: object) -> object: ...

    def _decode_by(self, codec: Codec, data: object) -> object: ...


class Codec(FromDict):
    """Base class of the three kinds. Subclasses are frozen dataclasses, equal by value."""

    name: ClassVar[str]
    """The v3 name in written documents."""
    kind: ClassVar[Kind]

    @property
    def diagnostics(self) -> tuple[str, ...]:
        """Describe what is unusual about the document that this codec was parsed from, although it can be read."""
        return ()

    @property
    def is_foreign(self) -> bool:
        """Return whether this codec depends on registrations of other packages outside of `tessarr.registry`."""
        return False

    @classmethod
    @abstractmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        """Parse the ``configuration`` of a v3 codec object ({} when absent).

        Raises `MetadataValidationError` listing every problem, unknown members included (V3-EXT-12); each ``loc`` is
        relative to the configuration.
        """

    @abstractmethod
    def to_json(self) -> JSONObject:
        """Return the v3 codec object, always in object form: ``{"name": …}`` or ``{"name": …, "configuration": …}``."""

    def _encode_sync(self, chunk_data: object, chunk_spec: _ZarrPythonSpec) -> object:
        """Encode a buffer of zarr-python for a chunk that its ``ArraySpec`` describes."""
        return chunk_spec._encode_by(self, chunk_data)

    def _decode_sync(self, chunk_data: object, chunk_spec: _ZarrPythonSpec) -> object:
        """Decode a buffer of zarr-python, as `_encode_sync` encodes it."""
        return chunk_spec._decode_by(self, chunk_data)

    def fit(self, spec: ChunkSpec) -> Self:
        """Return the codec with every automatic option (such as blosc's typesize) decided for `spec`."""
        return self


class ArrayToArray(Codec):
    """Turn an array into another array."""

    kind = "array_to_array"

    @abstractmethod
    def encoded_spec(self, spec: ChunkSpec) -> ChunkSpec:
        """Describe the output of `encode` for a chunk of `spec`: shape, data type and fill value.

        Raises `CodecError` when the codec cannot apply to such chunks.
        """

    @abstractmethod
    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        """Encode a chunk of ``spec.shape`` and any strides; the result has the encoded spec's shape and may be a
        view.
        """

    @abstractmethod
    def decode(self, chunk: AnyArray, spec: ChunkSpec) -> AnyArray:
        """Undo `encode`; `spec` is the same *decoded* spec as for `encode`. `chunk` is not written; may return a
        view.
        """

    def permutation(self, ndim: int) -> tuple[int, ...] | None:
        """Return the order of axes in the view that `encode` returns; ``None`` for a codec that does more than permute axes."""
        return None


class ArrayToBytes(Codec):
    """Turn an array into bytes: exactly one in a chain."""

    kind = "array_to_bytes"

    @abstractmethod
    def encoded_size(self, spec: ChunkSpec) -> int | None:
        """Return the exact encoded size of a chunk of `spec`; ``None`` when it depends on the data.

        Raises `CodecError` when the codec cannot apply to such chunks. Called once, when the chain is bound.
        """

    @abstractmethod
    def encode(self, chunk: AnyArray, spec: ChunkSpec) -> Buffer:
        """Encode a chunk of ``spec.shape`` and any strides. The result may alias `chunk`'s memory."""

    @abstractmethod
    def decode(self, data: Buffer, spec: ChunkSpec) -> AnyArray:
        """Decode to an array of ``spec.shape``, in any byte order (assigning it to ``spec.dtype`` gives the right
        values).

        The result may alias `data`. Raises `CodecError` when `data` is shorter or longer than it must be.
        """

    def decode_into(self, data: Buffer, spec: ChunkSpec, out: AnyArray) -> None:
        """Decode into `out`, of ``spec.shape``, any strides and a dtype to which ``spec.dtype`` casts. Raises as `decode`.

        The content of `out` is undefined after an error.
        """
        out[...] = self.decode(data, spec)

    def layout(self, spec: ChunkSpec) -> Any:
        """Describe where the inner chunks of a stored chunk are (`tessarr.codecs.sharding.ShardLayout`); ``None``
        without inner chunks.
        """
        return None


class BytesToBytes(Codec):
    """Turn bytes into bytes: compressors and checksums."""

    kind = "bytes_to_bytes"

    @abstractmethod
    def encoded_size(self, nbytes: int) -> int | None:
        """Return the exact encoded size of `nbytes` input bytes; ``None`` when it depends on the data."""

    @abstractmethod
    def encode(self, data: Buffer) -> Buffer:
        """Encode one buffer; a C-contiguous array of any dtype is taken as its bytes."""

    @abstractmethod
    def decode(self, data: Buffer, nbytes: int | None) -> Buffer:
        """Decode one buffer. `nbytes` is the exact decoded size where the chain knows it, and is checked *before*
        memory of another size is allocated; ``None`` for variable-length data.

        Raises `CodecError` for data that is corrupt, truncated, too long or does not decode to `nbytes`; `ChecksumError` for a
        checksum that does not match.
        """

    def decode_into(self, data: Buffer, out: memoryview) -> bool:
        """Decode straight into `out` (writable, contiguous, unsigned bytes, exactly the decoded size).

        Returns ``False``, having written nothing, when the codec cannot do better than `decode` and a copy.
        Raises as `decode`.
        """
        return False

"""Every error tessarr raises, in one tree.

    TessarrError
    ├── BaseZarrError (ValueError)
    │   ├── NodeNotFoundError (FileNotFoundError) ── ArrayNotFoundError, GroupNotFoundError
    │   ├── ContainsArrayError, ContainsGroupError (FileExistsError) ── CopyError (both); ContainsArrayAndGroupError
    │   ├── MetadataValidationError ── NodeTypeValidationError, DataTypeValidationError,
    │   │                              InvalidJSONError (json.JSONDecodeError)
    │   ├── UnknownCodecError ── PickleCodecDisabledError
    │   ├── CodecError ── ChecksumError, ShardIndexError
    │   ├── ChunkNotFoundError
    │   └── KeyValidationError, NodeNameError
    ├── ArrayIndexError (IndexError) ── BoundsCheckError, NegativeStepError, VindexInvalidSelectionError
    ├── StoreError (OSError) ── ReadOnlyError (PermissionError, ValueError), ConflictError, DurabilityError,
    │                          ForbiddenPlaceError (PermissionError), PendingCommitError, JournalError,
    │                          SnapshotChangedError, StaleConsolidatedError;
    │                          ConflictError ── PendingAppendError, StaleNodeError (NodeNotFoundError too)
    ├── TransactionError, FailedTasksError (RuntimeError)
    ├── UnsupportedOperationError (NotImplementedError)
    └── MissingDependencyError (ImportError)

An error says, in this order: what failed · where (store, path, chunk, key, codec) · expected · got · what to do.
The same facts are attributes, and ``kind`` is a stable word for programs. Often only a caller knows the location (a codec
does not know which chunk it decodes), adds it with `TessarrError.at`, and re-raises.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import JSONDecodeError
from typing import ClassVar, NamedTuple, Self, cast

_PLACE = ("store", "path", "chunk", "key", "codec")
_FIELDS = (*_PLACE, "expected", "got", "hint")


class TessarrError(Exception):
    """The root of all tessarr errors.

    `store`, `path` (node), `chunk` (coords), `key` (store key) and `codec` (name) give the location;
    `expected`, `got` and `hint` say what was wrong and what to do. Each is ``None`` when it does not apply.
    """

    kind = "error"
    store: str | None
    path: str | None
    chunk: tuple[int, ...] | None
    key: str | None
    codec: str | None
    expected: object
    got: object
    hint: str | None

    def __init__(self, what: str, **facts: object) -> None:
        super().__init__(what)
        self.what = what
        unknown = facts.keys() - set(_FIELDS)
        if unknown:
            raise TypeError(f"unknown error facts {sorted(unknown)}; known: {_FIELDS}")
        for name in _FIELDS:
            setattr(self, name, facts.get(name))

    def at(self, **place: object) -> Self:
        """Fill in unknown parts of the location; return the error, for ``raise error.at(...)``."""
        for name, value in place.items():
            if getattr(self, name) is None:
                setattr(self, name, value)
        return self

    def __str__(self) -> str:
        place = [f"{name} {getattr(self, name)!r}" for name in _PLACE if getattr(self, name) is not None]
        text = self.what + (f" [{', '.join(place)}]" if place else "")
        if self.expected is not None:
            text += f"; expected {self.expected}"
        if self.got is not None:
            text += f"; got {self.got}"
        return text + (f". {self.hint}" if self.hint else "")

    def __reduce__(self) -> tuple[object, ...]:
        # `errno` of `OSError` and `path` of `ImportError` are not in the dictionary.
        others = {name: value for name in ("errno", "path") if (value := getattr(self, name, None)) is not None}
        return _unpickled, (type(self), self.args), {**self.__dict__, **others}


def _unpickled(kind: type[TessarrError], args: tuple[object, ...]) -> TessarrError:
    """Make the error of a pickle, whose attributes are set later.

    Calls `__new__` of the built-in class that determines the memory layout, because for a class that derives from `ValueError`
    and `OSError`, ``kind.__new__`` is that of `ValueError`, which refuses. Does not call `__init__`, whose arguments may differ
    in subclasses.
    """
    built_in: type[BaseException] = kind
    while built_in.__module__ != "builtins":
        built_in = cast("type[BaseException]", built_in.__base__)
    error = built_in.__new__(kind)
    error.args = args
    return error


class BaseZarrError(TessarrError, ValueError):
    """An error about Zarr data or metadata (the name is zarr-python's).

    Programs for zarr-python raise some of these with the parts of a message, as in ``ContainsGroupError(store, path)``.
    """

    kind = "zarr"
    _message: ClassVar[str] = "{}"
    """The message of `what` and `parts`, in zarr-python's words."""

    def __init__(self, what: object, *parts: object, **facts: object) -> None:
        super().__init__(self._message.format(what, *parts) if parts else str(what), **facts)


class NodeNotFoundError(BaseZarrError, FileNotFoundError):
    """No array and no group exists at the path."""

    kind = "node_not_found"


class ArrayNotFoundError(NodeNotFoundError):
    """No array exists at the path."""

    kind = "array_not_found"
    _message = "No array found in store {!r} at path {!r}"


class GroupNotFoundError(NodeNotFoundError):
    """No group exists at the path."""

    kind = "group_not_found"
    _message = "No group found in store {!r} at path {!r}"


class ContainsArrayError(BaseZarrError, FileExistsError):
    """An array exists where a node is to be created."""

    kind = "contains_array"
    _message = "An array exists in store {!r} at path {!r}."


class ContainsGroupError(BaseZarrError, FileExistsError):
    """A group exists where a node is to be created."""

    kind = "contains_group"
    _message = "A group exists in store {!r} at path {!r}."


class ContainsArrayAndGroupError(BaseZarrError):
    """Both an array and a group document exist at one path."""

    kind = "contains_array_and_group"
    _message = (
        "Array and group metadata documents (.zarray and .zgroup) were both found in store {!r} at path {!r}. "
        "Only one of these files may be present in a given directory / prefix. "
        "Remove the .zarray file, or the .zgroup file, or both."
    )


class MixedFormatsError(BaseZarrError):
    """A node is to be created in a group of another Zarr format, from which it would not be found."""

    kind = "mixed_formats"


class Problem(NamedTuple):
    """One problem of a metadata document."""

    loc: tuple[str | int, ...]
    """Location in the document: object keys and list positions from its root."""
    kind: str
    """A stable word: missing, type, value, unknown, unsupported."""
    message: str

    def __str__(self) -> str:
        return f"{'/'.join(map(str, self.loc)) or '(document)'}: {self.message}"


class MetadataValidationError(BaseZarrError):
    """A metadata document breaks its specification; `problems` lists all violations."""

    kind = "metadata"

    _message = "Invalid value for {!r}. Expected {!r}. Got {!r}."

    def __init__(self, what: str, problems: Sequence[Problem] | str = (), *parts: object, **facts: object) -> None:
        words = (problems,) if isinstance(problems, str) else ()
        super().__init__(what, *words, *parts, **facts)
        self.problems = [] if isinstance(problems, str) else list(problems)

    def __str__(self) -> str:
        return super().__str__() + "".join(f"\n  - {problem}" for problem in self.problems)


class InvalidJSONError(JSONDecodeError, MetadataValidationError):
    """A metadata document is not JSON. `msg`, `doc`, `pos`, `lineno` and `colno` are those of `json.JSONDecodeError`."""

    def __init__(
        self,
        what: str,
        problems: Sequence[Problem] | str = (),
        *parts: object,
        error: JSONDecodeError | None = None,
        **facts: object,
    ) -> None:
        MetadataValidationError.__init__(self, what, problems, *parts, **facts)
        if error is not None:
            self.msg, self.doc, self.pos, self.lineno, self.colno = (
                error.msg,
                error.doc,
                error.pos,
                error.lineno,
                error.colno,
            )

    def __reduce__(self) -> tuple[object, ...]:
        return MetadataValidationError.__reduce__(self)


def problems_of(error: TessarrError, *loc: str | int) -> list[Problem]:
    """Return the problems of a value that is at `loc` of a larger document; the error itself, if it lists none."""
    listed = getattr(error, "problems", None) or [Problem((), "value", str(error))]
    return [problem._replace(loc=(*loc, *problem.loc)) for problem in listed]


class NodeTypeValidationError(MetadataValidationError):
    """The document describes the other kind of node (a group where an array was requested, or the reverse)."""

    kind = "node_type"


class ArrayInsteadError(GroupNotFoundError, ContainsArrayError):
    """An array exists where a group was requested. zarr-python raises either of the base classes, so it inherits
    both.
    """

    kind = "array_instead"


class GroupInsteadError(ArrayNotFoundError, ContainsGroupError, NodeTypeValidationError):
    """A group exists where an array was requested. zarr-python raises any of the base classes, so it inherits all."""

    kind = "group_instead"


class DataTypeValidationError(MetadataValidationError):
    """A data type is unknown, malformed, or cannot be expressed in the requested format."""

    kind = "data_type"


class ScalarError(BaseZarrError, TypeError):
    """A value is not one of the data type."""

    kind = "scalar"


class UnknownCodecError(BaseZarrError):
    """No codec is registered under the name."""

    kind = "unknown_codec"


class PickleCodecDisabledError(UnknownCodecError):
    """The data would have to be unpickled, which would run code from the data; tessarr refuses."""

    kind = "pickle_refused"


class UnknownStoredCodecError(MetadataValidationError, UnknownCodecError):
    """A metadata document names an unregistered codec."""

    kind = "unknown_stored_codec"


class CodecError(BaseZarrError):
    """A chunk could not be encoded or decoded."""

    kind = "codec"


class ChecksumError(CodecError):
    """A stored checksum does not match the stored bytes."""

    kind = "checksum"


class ShardIndexError(CodecError):
    """A shard's index is missing, truncated or contradicts the shard."""

    kind = "shard_index"


class ChunkNotFoundError(BaseZarrError):
    """A chunk is missing, and the settings make that an error."""

    kind = "chunk_not_found"


class KeyValidationError(BaseZarrError):
    """A store key is malformed or would leave the store's root."""

    kind = "key"


class NodeNameError(BaseZarrError):
    """A node name or path is not allowed."""

    kind = "node_name"


class ArrayIndexError(TessarrError, IndexError):
    """A selection does not fit the array."""

    kind = "index"


class BoundsCheckError(ArrayIndexError):
    """An index lies outside the array."""

    kind = "bounds"


class NegativeStepError(ArrayIndexError):
    """A slice has a negative step where only positive steps are allowed."""

    kind = "negative_step"


class VindexInvalidSelectionError(ArrayIndexError):
    """A point selection is neither coordinate arrays nor a mask of the array's shape."""

    kind = "vindex"


class FieldNotFoundError(ArrayIndexError, ValueError):
    """The data type has no field of the name."""

    kind = "field"


class IncompatibleNodeError(ContainsArrayError, ContainsGroupError, TypeError):
    """A required member exists, and is a node of the other kind."""

    kind = "incompatible_node"


class CopyError(ContainsArrayError, ContainsGroupError, RuntimeError):
    """The destination of a copy is occupied."""

    kind = "copy"


PathNotFoundError = NodeNotFoundError
MetadataError = MetadataValidationError
BadCompressorError = UnknownCodecError
"""This and the next two are zarr-python 2's names."""


class StoreError(TessarrError, OSError):
    """A store could not be read or written: an I/O fault, never the absence of a key."""

    kind = "store"


class ReadOnlyError(StoreError, PermissionError, ValueError):
    """A write was requested of a read-only store or node."""

    kind = "read_only"


class ForbiddenPlaceError(StoreError, PermissionError):
    """Stored data refers to a place that the user did not allow."""

    kind = "forbidden_place"


class ConflictError(StoreError):
    """A conditional write found another version than the expected one."""

    kind = "conflict"
    keys: tuple[str, ...] = ()
    """The keys that another writer changed, of a transaction that was not committed."""
    in_doubt: bool = False
    """Whether it is unknown that nothing was changed: the answer to a first request was lost, and another writer came since.

    The new value may have been there in between. Otherwise nothing was changed.
    """

    def leave_in_doubt(self) -> Self:
        """Set `in_doubt`, and say so; return the error."""
        if not self.in_doubt:
            self.in_doubt = True
            self.add_note(
                "An earlier request for the same change got no answer, and may have been carried out before that of the other "
                "writer: whether the change was made is unknown. Look at what is stored before you repeat it"
            )
        return self


class PendingAppendError(ConflictError):
    """The data of an append is stored, and becomes visible once an earlier append has ended; do not append it again."""

    kind = "append_pending"


class StaleNodeError(ConflictError, NodeNotFoundError):
    """The node was deleted, replaced or migrated to another format after this object was opened. It was not changed."""

    kind = "stale_node"


class PendingCommitError(StoreError):
    """A transaction is committed, and could not be carried out to the end; do not repeat its changes.

    The next process that opens one of the nodes for writing completes it; objects opened for reading show the new values.
    """

    kind = "commit_pending"


class JournalError(StoreError):
    """The journal or the record of a transaction is damaged, or the journal is of another directory. Nothing was changed."""

    kind = "journal"


class SnapshotChangedError(StoreError):
    """A value that a snapshot was to read has been changed since, and the old one was not kept."""

    kind = "snapshot_changed"


class DurabilityError(StoreError):
    """A change was made and is visible, but whether it survives a power cut is unknown: syncing it failed.

    Only durable stores raise it. Every other error of a write means that the value is unchanged. The sync is not retried,
    because after a failure the operating system reports success without writing.
    """

    kind = "durability"


class StaleConsolidatedError(StoreError):
    """A change was made and is visible, but consolidated metadata above could not be updated; do not repeat the change.

    `tessarr.consolidate_metadata` or ``tessarr repair`` writes the consolidated metadata again.
    """

    kind = "stale_consolidated"


class UnsupportedOperationError(TessarrError, NotImplementedError):
    """The store, format or codec cannot do this."""

    kind = "unsupported"


class TransactionError(TessarrError, RuntimeError):
    """A transaction was used where it cannot be: it has ended, is open already, or belongs to another process."""

    kind = "transaction"


class FailedTasksError(TessarrError, RuntimeError):
    """Tasks of a plan failed, or are not done."""

    kind = "failed_tasks"
    tasks: Mapping[int, BaseException | None]
    """The number of each task, and the error of its last attempt; ``None`` for a task that has not run."""

    def __init__(self, what: str, tasks: Mapping[int, BaseException | None] = {}, **facts: object) -> None:
        super().__init__(what, **facts)
        self.tasks = dict(tasks)


class MissingDependencyError(TessarrError, ImportError):
    """An optional package is missing; the message names the extra to install."""

    kind = "missing_dependency"


class ZarrUserWarning(UserWarning):
    """The root of tessarr's warnings."""


class ZarrDeprecationWarning(ZarrUserWarning, DeprecationWarning):
    """A feature works, and should no longer be used."""


class ZarrFutureWarning(ZarrUserWarning, FutureWarning):
    """A feature will change."""


class ZarrRuntimeWarning(ZarrUserWarning, RuntimeWarning):
    """Data looks wrong, and was read nevertheless."""


class UnstableSpecificationWarning(ZarrFutureWarning):
    """The written data follows an unfinished specification."""

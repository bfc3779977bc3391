"""The nodes of a model: arrays and groups, frozen, typed in their attributes and members.

An array is its metadata document with the user's attributes under ``attributes``; a group also has ``members``. The
fields have the names of the format, and hold plain JSON:

>>> array = ArraySpecV2(shape=[10, 10], chunks=[1, 1], dtype="|u1", compressor=None, attributes={"name": "cool"})
>>> group = GroupSpec(zarr_format=2, members={"foo": array})
>>> group["foo"].shape, group.members["foo"].attributes["name"]
((10, 10), 'cool')

Two models are equal when they have the same structure: the order of members, the formatting of JSON, short-hand and
object spellings of extensions, and the spelling of NaN do not count (`tessarr.model.equal` can ignore more).

Source: ZEP 6, "Specification of the base Zarr Object Model".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, Self, TypeAlias, TypeVar, cast

from tessarr.common.strict_json import plain
from tessarr.errors import MetadataValidationError, NodeNameError, Problem
from tessarr.model.comparison import equal
from tessarr.model.fields import attributes_json, rename_members
from tessarr.settings import is_strict
from tessarr.types import JSON, JSONObject, Shape

Spec: TypeAlias = "ArraySpec[Any] | GroupSpec[Any, Any]"
"""Any node."""

if TYPE_CHECKING:
    # A default, which Python has from 3.13 on, for models that do not state what their attributes or members are.
    from typing_extensions import TypeVar as DefaultTypeVar

    TAttrs = DefaultTypeVar("TAttrs", covariant=True, default=Mapping[str, JSON])
    TMember = DefaultTypeVar("TMember", covariant=True, default=Spec)
else:
    TAttrs = TypeVar("TAttrs", covariant=True)
    TMember = TypeVar("TMember", covariant=True)
TNew = TypeVar("TNew")


class ArraySpec(Generic[TAttrs]):
    """An array of either format: `ArraySpecV3` or `ArraySpecV2`."""

    zarr_format: ClassVar[Literal[2, 3]]
    shape: Sequence[int]
    attributes: TAttrs
    extra: Mapping[str, JSON]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def document(self) -> JSONObject:
        """Return the metadata document without the attributes, as a new plain JSON object."""
        raise NotImplementedError

    def documents(self) -> dict[str, JSONObject]:
        """Return the stored documents of the node: key relative to it → document."""
        raise NotImplementedError

    def to_json(self) -> JSONObject:
        """Return the node as JSON: its document, and the attributes under ``attributes``."""
        return {**self.document(), "attributes": attributes_json(self.attributes)}

    def to_store(self, store: Any, path: str = "", *, overwrite: bool = False) -> None:
        """Create the array: only its metadata documents (`tessarr.model.to_store`)."""
        from tessarr import model

        model.to_store(self, store, path, overwrite=overwrite)

    def with_(self, **changes: object) -> Self:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)  # type: ignore[type-var]

    def __eq__(self, other: object) -> bool:
        return equal(self, other) if isinstance(other, ArraySpec) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def _shape(value: object) -> Shape:
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else cast("Shape", value)


def _default_keys() -> JSON:
    return {"name": "default", "configuration": {"separator": "/"}}


@dataclass(frozen=True, kw_only=True, eq=False)
class ArraySpecV3(ArraySpec[TAttrs]):
    """An array of Zarr v3: the members of its ``zarr.json``.

    Nothing is resolved: the model may hold a data type or codec that this installation does not know (`validate`
    reports it). Sequences become tuples.
    """

    zarr_format: ClassVar[Literal[3]] = 3
    shape: Sequence[int]
    data_type: JSON
    chunk_grid: JSON
    chunk_key_encoding: JSON = field(default_factory=_default_keys)
    fill_value: JSON
    codecs: Sequence[JSON]
    attributes: TAttrs = field(default_factory=dict)  # type: ignore[assignment]
    dimension_names: Sequence[str | None] | None = None
    storage_transformers: Sequence[JSON] = ()
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further members of the document, each an object with ``"must_understand": false``."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _shape(self.shape))
        object.__setattr__(self, "codecs", tuple(self.codecs))
        object.__setattr__(self, "storage_transformers", tuple(self.storage_transformers or ()))
        if self.dimension_names is not None:
            object.__setattr__(self, "dimension_names", tuple(self.dimension_names))
        _check_extra(self, "members")
        attributes_json(self.attributes)

    def document(self) -> JSONObject:
        """Return the ``zarr.json`` without its attributes."""
        document: JSONObject = {
            "zarr_format": 3,
            "node_type": "array",
            "shape": list(self.shape),
            "data_type": plain(self.data_type),
            "chunk_grid": plain(self.chunk_grid),
            "chunk_key_encoding": plain(self.chunk_key_encoding),
            "fill_value": plain(self.fill_value),
            "codecs": plain(self.codecs),
        }
        if self.dimension_names is not None:
            document["dimension_names"] = list(self.dimension_names)
        if self.storage_transformers:
            document["storage_transformers"] = plain(self.storage_transformers)
        return {**document, **plain(dict(self.extra))}

    def documents(self) -> dict[str, JSONObject]:
        """Return ``zarr.json``."""
        return {"zarr.json": {**self.document(), "attributes": attributes_json(self.attributes)}}


@dataclass(frozen=True, kw_only=True, eq=False)
class ArraySpecV2(ArraySpec[TAttrs]):
    """An array of Zarr v2: the members of its ``.zarray``, and the attributes of ``.zattrs``."""

    zarr_format: ClassVar[Literal[2]] = 2
    shape: Sequence[int]
    chunks: Sequence[int]
    dtype: JSON
    compressor: JSON
    fill_value: JSON = 0
    order: Literal["C", "F"] = "C"
    filters: JSON = None
    dimension_separator: Literal[".", "/"] = "."
    attributes: TAttrs = field(default_factory=dict)  # type: ignore[assignment]
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further members of the document; readers ignore them."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "shape", _shape(self.shape))
        object.__setattr__(self, "chunks", _shape(self.chunks))
        _check_extra(self, "members")
        attributes_json(self.attributes)

    def document(self) -> JSONObject:
        """Return the ``.zarray``; the separator is written only when it is "/"."""
        document: JSONObject = {
            "zarr_format": 2,
            "shape": list(self.shape),
            "chunks": list(self.chunks),
            "dtype": plain(self.dtype),
            "compressor": plain(self.compressor),
            "fill_value": plain(self.fill_value),
            "order": self.order,
            "filters": plain(self.filters),
        }
        if self.dimension_separator != ".":
            document["dimension_separator"] = self.dimension_separator
        return {**document, **plain(dict(self.extra))}

    def documents(self) -> dict[str, JSONObject]:
        """Return ``.zarray``, and ``.zattrs`` when there are attributes."""
        attributes = attributes_json(self.attributes)
        return {".zarray": self.document(), **({".zattrs": attributes} if attributes else {})}


@dataclass(frozen=True, kw_only=True, eq=False)
class GroupSpec(Generic[TAttrs, TMember]):
    """A group of either format, and everything below it.

    Raises `NodeNameError` for a member name that is not a valid node name, and `MetadataValidationError` for a member
    that is not a node or has the other format: all nodes of a hierarchy have one format.
    """

    zarr_format: Literal[2, 3] = 3
    attributes: TAttrs = field(default_factory=dict)  # type: ignore[assignment]
    members: Mapping[str, TMember] = field(default_factory=dict)
    """Direct children: name → node."""
    extra: Mapping[str, JSON] = field(default_factory=dict)
    """Further members of the document (v3: objects with ``"must_understand": false``), under their own names."""

    def __post_init__(self) -> None:
        if self.zarr_format not in (2, 3):
            problem = Problem(("zarr_format",), "value", f"must be 2 or 3, got {self.zarr_format!r}")
            raise MetadataValidationError("invalid model", [problem])
        for name, member in self.members.items():
            check_member_name(name, self.zarr_format)
            loc = ("members", name)
            if not isinstance(member, ArraySpec | GroupSpec):
                problem = Problem(loc, "type", f"must be a node, got {member!r}")
                raise MetadataValidationError("invalid model", [problem])
            if member.zarr_format != self.zarr_format:
                message = f"a v{self.zarr_format} group cannot hold a v{member.zarr_format} node"
                raise MetadataValidationError("invalid model: mixed formats", [Problem(loc, "value", message)])
        attributes_json(self.attributes)

    def __getitem__(self, path: str) -> Any:
        """Return the node at `path` below this group ("" is the group). Raises `KeyError`."""
        node: object = self
        for name in filter(None, path.split("/")):
            if not isinstance(node, GroupSpec) or name not in node.members:
                raise KeyError(path)
            node = node.members[name]
        return node

    def __contains__(self, path: str) -> bool:
        try:
            self[path]
        except KeyError:
            return False
        return True

    def walk(self) -> Iterator[tuple[str, Spec]]:
        """Yield this group under "", then every node below it by path, parents before children."""
        yield from walk(self)

    def document(self) -> JSONObject:
        """Return the group's document without its attributes."""
        kind: JSONObject = {"node_type": "group"} if self.zarr_format == 3 else {}
        return {"zarr_format": self.zarr_format, **kind, **plain(dict(self.extra))}

    def documents(self) -> dict[str, JSONObject]:
        """Return the stored documents of the group itself: key relative to it → document."""
        attributes = attributes_json(self.attributes)
        if self.zarr_format == 3:
            return {"zarr.json": {**self.document(), "attributes": attributes}}
        return {".zgroup": self.document(), **({".zattrs": attributes} if attributes else {})}

    def to_json(self) -> JSONObject:
        """Return the group and everything below it as JSON (`tessarr.model.to_json`)."""
        kind: JSONObject = {"node_type": "group"} if self.zarr_format == 3 else {}
        return {
            "zarr_format": self.zarr_format,
            **kind,
            **rename_members(plain(dict(self.extra))),
            "attributes": attributes_json(self.attributes),
            "members": {name: cast("Any", member).to_json() for name, member in self.members.items()},
        }

    def to_store(self, store: Any, path: str = "", *, overwrite: bool = False, consolidate: bool = False) -> None:
        """Create the group and everything below it: only the metadata documents (`tessarr.model.to_store`)."""
        from tessarr import model

        model.to_store(self, store, path, overwrite=overwrite, consolidate=consolidate)

    def with_(self, **changes: Any) -> Self:
        """Return a copy with some fields replaced."""
        return replace(self, **changes)

    def __eq__(self, other: object) -> bool:
        return equal(self, other) if isinstance(other, GroupSpec) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def walk(spec: Spec, path: str = "") -> Iterator[tuple[str, Spec]]:
    """Yield `spec` under `path`, then every node below it, parents before children."""
    yield path, spec
    if isinstance(spec, GroupSpec):
        for name, member in spec.members.items():
            yield from walk(member, f"{path}/{name}" if path else name)


def with_attributes(spec: ArraySpec[object], parse: Callable[[dict[str, Any]], TNew]) -> ArraySpec[TNew]:
    """Parse the attributes of an array with `parse`, which gets the JSON object and returns a type of yours.

    >>> from dataclasses import make_dataclass
    >>> Named = make_dataclass("Named", ["name"])
    >>> array = ArraySpecV2(shape=[1], chunks=[1], dtype="|u1", compressor=None, attributes={"name": "x"})
    >>> with_attributes(array, lambda attributes: Named(**attributes)).attributes
    Named(name='x')
    """
    return cast("ArraySpec[TNew]", spec.with_(attributes=parse(attributes_json(spec.attributes))))


def _check_extra(spec: ArraySpec[object], *forbidden: str) -> None:
    for name in forbidden:
        if name in spec.extra:
            problem = Problem((name,), "unknown", f"an array cannot have {name}")
            raise MetadataValidationError("invalid model", [problem])


def check_member_name(name: object, zarr_format: int) -> None:
    """Refuse a name that the format does not allow for a node. Raises `NodeNameError`.

    Source: Zarr v3.1 core, "Node names"; Zarr v2, "Hierarchies".
    """
    wrong = None
    if not isinstance(name, str) or not name:
        wrong = "a name is a non-empty string"
    elif "/" in name:
        wrong = "a member is a direct child; a name holds no slash"
    elif set(name) == {"."}:
        wrong = "a name may not consist of periods only"
    elif zarr_format == 3 and name.startswith("__" if is_strict() else "__zarr"):
        wrong = 'names beginning with "__" are reserved'
    elif name in ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata"):
        wrong = "this is the name of a metadata document"
    if wrong:
        raise NodeNameError(f"not a node name: {wrong}", got=repr(name))

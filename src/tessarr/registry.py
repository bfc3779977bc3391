"""Resolve names to classes, for the five extension points of Zarr v3 and for numcodecs ids, and URL schemes to stores.

Each point has one explicit, lazy table: a name maps to ``"module:Class"``, which is imported on first use. tessarr's own
names are in `tessarr.built_in`, above the classes. This module knows none of them: the package says which module adds them,
and it is imported for the first lookup. Third parties add names with
`register`, or by an entry point in the group ``tessarr.<point>``. Codecs that other packages offer to zarr-python, in its
group ``zarr.codecs``, are read too, and adapted when they are needed (`tessarr.codecs.zarr_python`). Built-in and registered
names have precedence over entry points, and tessarr's groups over zarr-python's. zarr-python's group ``zarr.data_type`` is
not read.

>>> get("codec", "gzip").__name__
'GzipCodec'
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from tessarr.errors import BaseZarrError

Point: TypeAlias = Literal[
    "data_type", "chunk_grid", "chunk_key_encoding", "codec", "storage_transformer", "store_url", "source"
]  # fmt: skip

_TABLE: dict[str, dict[str, object]] = {point: {} for point in get_args(Point)}
_functions: dict[str, str] = {}
_entry_points_read: set[str] = set()
_extended: set[str] = set()
"""The points with third-party registrations that decide how documents are read."""
_imported: dict[object, Any] = {}
"""What the table has → class. Not stored in the table, where another thread may have registered another class."""


class _ForZarrPython(NamedTuple):
    """A codec in the group ``zarr.codecs``: its class is imported and adapted when the codec is needed."""

    name: str
    value: str
    package: str


_NAME = r"[a-z][a-z0-9-_.]+"
_URI = r"(?:https?://|urn:)[\x21-\x7e]+"


def is_extension_name(name: str) -> bool:
    """Return whether `name` is allowed for a new extension. Source: Zarr v3.1 core, "Extension naming".

    >>> [is_extension_name(name) for name in ("zstd", "numcodecs.adler32", "https://example.org/x", "foo/bar", "Zstd", "a")]
    [True, True, True, False, False, False]
    """
    return bool(re.fullmatch(_NAME, name, re.ASCII) or re.fullmatch(_URI, name))


def register(point: Point, name: str, implementation: object) -> None:
    """Register `implementation` (a class, or ``"module:Class"``) under `name` at `point`; replaces an earlier one.

    Raises `BaseZarrError` (a `ValueError`) for a name that neither has the specification's form nor is a URI.
    """
    if not is_extension_name(name):
        raise BaseZarrError(
            f"{name!r} cannot name a {point}", expected="two or more of a-z 0-9 - _ . beginning with a letter, or a URI"
        )
    _TABLE[point][name] = implementation
    _extended.add(point)


def add_built_in(table: Mapping[Point, Mapping[str, str]], functions: Mapping[str, str]) -> None:
    """Add tessarr's own names, and the functions that lower modules need: see `tessarr.built_in`.

    Names that are registered already keep their classes.
    """
    for point, built_in in table.items():
        for name, implementation in built_in.items():
            _TABLE[point].setdefault(name, implementation)
    _functions.update(functions)  # last: it says that the names are complete


def _fill() -> None:
    """Add tessarr's own names before a name is missed."""
    if not _functions:
        importlib.import_module(sys.modules[__name__.partition(".")[0]]._BUILT_IN)


def _import(name: str) -> object:
    module, _, attribute = name.partition(":")
    found: object = getattr(importlib.import_module(module), attribute)
    return found


def higher(name: str) -> Any:
    """Return a function of a higher module, by its name in `tessarr.built_in`: for what a class cannot do without it."""
    _fill()
    return _import(_functions[name])


def _resolve(point: str, name: str) -> object:
    found = _TABLE[point].get(name)
    if found is None:
        _fill()
        found = _TABLE[point].get(name)
    if isinstance(found, _ForZarrPython):
        implementation = _imported.get(found)
        if implementation is None:
            implementation = _imported[found] = higher("zarr.codecs")(*found)
        return implementation
    if isinstance(found, str):
        implementation = _imported.get(found)
        if implementation is None:
            implementation = _imported[found] = _import(found)
        return implementation
    return found


def _read_entry_points(point: str) -> None:
    """Add the classes of installed packages; built-in and registered names keep precedence."""
    from importlib.metadata import entry_points

    _fill()
    for entry in entry_points(group=f"tessarr.{point}"):
        _TABLE[point].setdefault(entry.name, entry.value)
        if point not in ("store_url", "source"):
            _extended.add(point)
    for entry in entry_points(group="zarr.codecs") if point == "codec" else ():
        if not entry.value.startswith("tessarr."):
            package = entry.dist.name if entry.dist else entry.module
            _TABLE[point].setdefault(entry.name, _ForZarrPython(entry.name, entry.value, package))
    _entry_points_read.add(point)  # only now: other threads rely on a complete table


def get(point: Point, name: str) -> Any | None:
    """Return the class registered under `name`, or ``None``."""
    found = _resolve(point, name)
    if found is None and point not in _entry_points_read:
        _read_entry_points(point)
        found = _resolve(point, name)
    return found


def is_extended() -> bool:
    """Return whether there are third-party registrations."""
    return bool(_extended)


def names(point: Point) -> Iterator[str]:
    """Return every name known at `point`, entry points included, sorted."""
    if point not in _entry_points_read:
        _read_entry_points(point)
    return iter(sorted(_TABLE[point]))


# -- zarr-python's names -------------------------------------------------------------------------------------------------


def register_codec(key: str, codec_cls: type[Any], *, qualname: str | None = None) -> None:  # noqa: ARG001 - zarr-python's argument
    """Register a codec, which must implement `tessarr.abc.codec`. `qualname` is accepted and has no effect."""
    if not hasattr(codec_cls, "from_json"):
        hint = "Inherit ArrayArrayCodec, ArrayBytesCodec or BytesBytesCodec of tessarr.abc.codec"
        raise BaseZarrError(f"{codec_cls.__name__} does not implement tessarr's contract for codecs", hint=hint)
    if not isinstance(getattr(codec_cls, "name", ""), str):
        codec_cls.registered_name = key
    register("codec", key, codec_cls)


def get_codec_class(key: str, reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Return the codec class registered under `key`. Raises `UnknownCodecError`. `reload_config` has no effect."""
    found: type[object] | None = get("codec", key)
    if found is None:
        from tessarr.errors import UnknownCodecError

        raise UnknownCodecError(f"no codec is registered as {key!r}", hint="See tessarr.registry.names('codec')")
    return found


def get_numcodec(data: Mapping[str, object]) -> object:
    """Make the numcodecs object of a configuration such as ``{"id": "zlib", "level": 1}``.

    Raises `UnknownCodecError` for an id that numcodecs does not know, `MetadataValidationError` for other
    values than mappings and for members that the codec refuses, `PickleCodecDisabledError` for pickle.
    """
    from tessarr.common.numcodecs import faults, numcodecs
    from tessarr.errors import MetadataValidationError, PickleCodecDisabledError, Problem, UnknownCodecError

    if not isinstance(data, Mapping):
        problem = Problem((), "type", f"must be an object, such as {{'id': 'zlib', 'level': 1}}, got {data!r}")
        raise MetadataValidationError("invalid configuration of a numcodecs codec", [problem])
    if data.get("id") == "pickle":
        raise PickleCodecDisabledError("tessarr does not unpickle data, which would run code from it")
    try:
        return numcodecs.get_codec(dict(data))
    except numcodecs.errors.UnknownCodecError as error:
        raise UnknownCodecError(f"numcodecs has no codec {data.get('id')!r}", hint=faults() or None) from error
    except (TypeError, ValueError) as error:
        problem = Problem((), "value", f"numcodecs refuses the configuration: {error}")
        raise MetadataValidationError(f"invalid {data['id']} codec", [problem], codec=str(data["id"])) from error


def register_chunk_key_encoding(key: str, cls: type[object]) -> None:
    """Register a chunk key encoding."""
    register("chunk_key_encoding", key, cls)


def get_chunk_key_encoding_class(key: str) -> type[Any]:
    """Return the chunk key encoding registered under `key`. Raises `KeyError`."""
    found: type[object] | None = get("chunk_key_encoding", key)
    if found is None:
        raise KeyError(f"no chunk key encoding is registered as {key!r}")
    return found


def register_pipeline(pipe_cls: type[object], qualname: str | None = None) -> None:
    """Do nothing: tessarr has engines instead of codec pipelines."""


def register_buffer(cls: type[object], qualname: str | None = None) -> None:
    """Do nothing: tessarr passes plain Python buffers."""


def register_ndbuffer(cls: type[object], qualname: str | None = None) -> None:
    """Do nothing: tessarr reads into NumPy arrays."""


def _no_class(what: str, instead: str) -> type[object]:
    from tessarr.errors import UnsupportedOperationError

    raise UnsupportedOperationError(f"tessarr has no {what} classes", hint=instead)


def get_pipeline_class(reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Raise `UnsupportedOperationError`."""
    return _no_class("codec pipeline", "See Array.engine")


def get_buffer_class(reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Raise `UnsupportedOperationError`."""
    return _no_class("buffer", "Values are bytes-like objects")


def get_ndbuffer_class(reload_config: bool = False) -> type[object]:  # noqa: ARG001 - zarr-python's argument
    """Raise `UnsupportedOperationError`."""
    return _no_class("buffer", "Chunks are NumPy arrays")

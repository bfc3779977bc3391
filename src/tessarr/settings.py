"""Settings of the process, with zarr-python's names and behaviour.

>>> config.get("array.write_empty_chunks")
False
>>> with config.set({"array.write_empty_chunks": True}):
...     config.get("array.write_empty_chunks")
True
>>> config.get("array.write_empty_chunks")
False

A setting comes from, in this order: `Config.set`, the environment (``TESSARR_ARRAY__WRITE_EMPTY_CHUNKS=1``, then
``ZARR_…``; two underscores for each dot), the defaults below. `Config.set` applies to all threads; as a context manager
it restores the earlier values. The environment is read at import and by `Config.reset`.
"""

from __future__ import annotations

import os
import re
from ast import literal_eval
from collections.abc import Callable, Iterator, Mapping
from threading import RLock
from typing import Any

from tessarr.errors import BaseZarrError, UnsupportedOperationError

DEFAULTS: dict[str, Any] = {
    "default_zarr_format": 3,  # format of new arrays and groups
    "engine": "auto",  # "auto" (native where it can), "reference" or "native"
    "attributes": {
        "allow_nan": False,  # write, and in v3 read, NaN and infinity as tokens outside JSON, as zarr-python does
        "write_empty": False,  # write the .zattrs of v2 nodes that have no attributes, as zarr-python 3 does
    },
    "names": {"warn_reserved": True},  # warn of names that begin with "__", which Zarr v3 reserves
    "strict": False,  # refuse violations of a specification that are otherwise read with a warning
    "json_indent": 2,  # indentation of metadata documents; None for one line
    # Append to stores that have neither locks for all writers nor conditional writes: only one process may do so at a time.
    "append": {"one_process": False},
    "array": {
        "order": "C",  # memory layout of results
        "write_empty_chunks": False,  # store chunks that hold only the fill value
        "read_missing_chunks": True,  # a missing chunk reads as fill value; otherwise it is an error
        "target_shard_size_bytes": None,  # size of shards="auto"; None for tessarr's own choice
        "rectilinear_chunks": True,
        # Byte ranges of one remote value nearer than this share a request: the bytes between cost less than another one.
        # At 50 ms and 100 MB/s a request costs as much as 5 MB, at 5 ms and 1 Gbit/s as much as 600 kB.
        "sharding_coalesce_max_gap_bytes": 512 << 10,
        # Largest coalesced request, so that one slow response does not delay all others.
        "sharding_coalesce_max_bytes": 16 << 20,
        "allow_unsafe_pickle_decode": False,
    },
    "async": {
        # Most requests in flight to one origin; the limit adapts to the origin (`tessarr.stores.remote.limiter`).
        # Object stores accept thousands of requests per second and prefix, so 256 are well within their limits.
        "concurrency": 256,
        # Decoded bytes of the chunks that are requested, or stored, at once: bounds the encoded bytes in memory.
        "nbytes": 256 << 20,
        "timeout": None,  # seconds after which a failed request is not retried; None: as in the store's retry policy
    },
    # Stale consolidated metadata of groups above the opened directory: "warn", "update" it, or "ignore" it.
    "consolidated": {"above_root": "warn"},
    "threading": {"max_workers": None},  # threads for codecs; None for the cores this process may use
    "cache": {"nbytes": 128 << 20},  # size of the native engine's cache of decoded chunks; 0 disables it
    "codec_pipeline": {"path": "tessarr", "batch_size": 1, "max_workers": None},
    "codecs": {},
    # Behaviour of zarr-python where tessarr's differs; `tessarr.as_zarr` sets these.
    "zarr_python": {
        "arguments": False,  # refuse arguments that zarr-python refuses, and warn of those that it ignores
        "warnings": False,  # issue zarr-python's other warnings: numcodecs in v3, automatic shards, …
        "auto_chunks": False,  # choose chunks="auto" as zarr-python does
        "overwrite_all": False,  # overwriting removes everything at the path, also files that are not Zarr
        "only_empty": False,  # mode "w-" refuses a place with any key, also of files that are not Zarr
        "both_formats": False,  # make a node where one of the other format is, which stays, if no key can be of both
        "little_endian": False,  # new v3 arrays are stored little-endian, whatever the byte order of the dtype
        "only_given_names": False,  # arrays without dimension names have no attribute `dimension_names`
        "documents": False,  # read chunk lengths that zarr-python corrects: 0, true, 4.0
        "absolute_names": False,  # a member's name that begins with "/" is a path from the root of the store
        "consolidated_on_request": False,  # groups use consolidated metadata only where the caller asks for it
        "given_attributes": False,  # attributes set through an object stay as given, a tuple also, until it is opened again
        "info": False,  # `Array.info` and `Group.info` have zarr-python's labels
        "storage_options": False,  # options of fsspec that obstore lacks open a store of fsspec
        "memory_urls": False,  # memory://… is the memory of fsspec, where that is installed
        "all_members": False,  # write `dimension_separator` and `storage_transformers` when they have their defaults too
    },
    "buffer": "numpy.ndarray",
    "ndbuffer": "numpy.ndarray",
}
"""Every top-level name, and its default value."""

WITHOUT_EFFECT: dict[str, str] = {
    "array.rectilinear_chunks": "rectilinear chunks always work",
    "array.allow_unsafe_pickle_decode": "data is never unpickled",
    "codec_pipeline.path": "the setting `engine` chooses",
    "codec_pipeline.batch_size": "the engines decide",
    "codec_pipeline.max_workers": "see `threading.max_workers`",
    "codecs": "codecs are registered with `tessarr.registry.register`",
    "buffer": "results are NumPy arrays",
    "ndbuffer": "results are NumPy arrays",
}
"""Settings of zarr-python that are accepted without effect, and why."""

_REMOVED = r"v[23]_default_(compressors?|filters|serializer)$"
"""Settings of zarr-python 3.0 that later releases refuse."""

PREFIXES = ("TESSARR_", "ZARR_")
"""Prefixes of environment variables; the first one that sets a name wins."""


_ABSENT: Any = object()


class Config:
    """Hold a tree of settings, addressed by names with dots. Safe to use from several threads at once."""

    def __init__(self, defaults: Mapping[str, object], environ: Mapping[str, str] | None = None) -> None:
        """Set up the tree; `environ` is ``os.environ`` when ``None``."""
        self.defaults: list[dict[str, Any]] = [_copy(defaults)]
        """The default tree, in a list of one like zarr-python's."""
        self._environ = os.environ if environ is None else environ
        self._lock = RLock()
        # The tree is replaced, never mutated, so that reading needs no lock.
        self._tree: dict[str, Any] = {}
        self._looked_up: tuple[dict[str, Any], dict[str, Any]] = self._tree, {}
        """A tree, and a cache of values looked up in it by name."""
        self.changes = 0
        """How often a setting was set: who keeps what follows from a setting compares it, and reads again after a change."""
        self.reset()

    def __repr__(self) -> str:
        return f"Config({self._tree})"

    def get(self, name: str, default: Any = _ABSENT) -> Any:
        """Return the value of `name`, or `default` when nothing sets it; a branch is returned as a new dictionary.

        Raises `KeyError`, with near matches, when nothing sets `name` and no `default` is given.
        """
        tree = self._tree
        looked_up, values = self._looked_up
        if looked_up is not tree:
            values = {}
            self._looked_up = tree, values
        value = values.get(name, _ABSENT)
        if value is _ABSENT:
            value = _lookup(tree, name.split("."))
            if value is not _ABSENT:
                values[name] = value
            elif default is _ABSENT:
                raise KeyError(_unknown(name, tree))
            else:
                return default
        return _copy(value) if isinstance(value, dict) else value

    def set(self, values: Mapping[str, Any] | None = None, **named: Any) -> Restore:
        """Set names to values; as a context manager, restore the earlier values on exit.

        `values` maps names with dots to values; a dictionary is merged into its branch. In keywords two
        underscores stand for a dot (``array__order="F"``).

        Raises `KeyError`, with near matches, for a top-level name that does not exist, which `tessarr.as_zarr` accepts, and
        `BaseZarrError` for the default codecs of zarr-python 3.0.
        """
        wanted = list(_leaves(values or {})) + [([*name.split("__")], value) for name, value in named.items()]
        with self._lock:
            tree, before = self._tree, []
            for parts, value in wanted:
                if parts[0] == "array" and parts[1:2] and re.match(_REMOVED, parts[1]):
                    raise BaseZarrError(
                        f"the setting {'.'.join(parts)!r} has no effect",
                        hint="zarr-python 3.1 removed it. Give filters, serializer and compressors to create_array",
                    )
                if _spelled(tree, parts[0]) not in tree and _lookup(tree, ["zarr_python", "arguments"]) is not True:
                    raise KeyError(_unknown(".".join(parts), tree))
                before.append((parts, _lookup(tree, parts)))
                tree = _replaced(tree, parts, value)
            self._tree = tree
            self.changes += 1
        return Restore(self, before)

    @property
    def config(self) -> dict[str, Any]:
        """A copy of the whole tree, under donfig's name."""
        return _copy(self._tree)

    def __getitem__(self, name: str) -> Any:
        """Return the value of a name, as `get`."""
        return self.get(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and _lookup(self._tree, name.split(".")) is not _ABSENT

    def reset(self) -> None:
        """Restore the defaults and the environment."""
        tree = _copy(self.defaults[0])
        for prefix in reversed(PREFIXES):
            for variable, text in self._environ.items():
                parts = variable.removeprefix(prefix).lower().split("__")
                # Variables of other programs may begin with the prefix too, and are ignored.
                if variable.startswith(prefix) and _spelled(tree, parts[0]) in tree:
                    tree = _replaced(tree, parts, _literal(text))
        with self._lock:
            self._tree = tree
            self.changes += 1

    refresh = reset

    def set_defaults(self, values: Mapping[str, object]) -> Callable[[], None]:
        """Set names to values that `reset` keeps; return a function that undoes it, with later settings of these
        names.
        """
        before = self.defaults[0]
        tree = before
        for parts, value in _leaves(values):
            tree = _replaced(tree, parts, value)
        self.defaults[0] = tree
        restore = self.set(values)

        def undo() -> None:
            self.defaults[0] = before
            restore.__exit__()

        return undo

    def update(self, values: Mapping[str, Any]) -> None:
        """Set values as with `set`, without a way to restore the earlier ones."""
        self.set(values)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of the whole tree."""
        return _copy(self._tree)

    def pprint(self, **options: Any) -> None:
        """Print the whole tree. `options` are those of `pprint.pprint`, such as ``width`` and ``stream``."""
        from pprint import pprint

        pprint(self._tree, **{"sort_dicts": False, **options})  # noqa: T203 - that is what it is for

    def enable_gpu(self) -> Restore:
        """Raise `UnsupportedOperationError`: results are NumPy arrays."""
        raise UnsupportedOperationError(
            "tessarr reads into NumPy arrays, not into GPU memory", hint="Copy the result, as with cupy.asarray(z[...])"
        )

    def _restore(self, before: list[tuple[list[str], object]]) -> None:
        """Restore the earlier values of names, the latest first; other names keep values set in the meantime."""
        with self._lock:
            for parts, value in reversed(before):
                self._tree = _replaced(self._tree, parts, value)
            self.changes += 1


class Restore:
    """Undo a setting on exit of a ``with`` block; returned by `Config.set`."""

    def __init__(self, config: Config, before: list[tuple[list[str], object]]) -> None:
        self._config = config
        self._before = before

    def __enter__(self) -> Config:
        return self._config

    def __exit__(self, *exception: object) -> None:
        self._config._restore(self._before)


def _copy(tree: Mapping[str, object]) -> dict[str, object]:
    """Copy `tree` with its dictionaries."""
    return {name: _copy(value) if isinstance(value, Mapping) else value for name, value in tree.items()}


def _spelled(tree: Mapping[str, object], name: str) -> str:
    """Return `name` as `tree` spells it; "-" and "_" are the same."""
    if name in tree:
        return name
    return next((known for known in tree if known.replace("-", "_") == name.replace("-", "_")), name)


def _lookup(tree: object, parts: list[str]) -> object:
    """Return the value at `parts`, or `_ABSENT`."""
    for part in parts:
        if not isinstance(tree, dict):
            return _ABSENT
        tree = tree.get(_spelled(tree, part), _ABSENT)
    return tree


def _replaced(tree: Mapping[str, object], parts: list[str], value: object) -> dict[str, object]:
    """Copy `tree` with `value` at `parts`, or without it when it is `_ABSENT`."""
    name = _spelled(tree, parts[0])
    if len(parts) > 1:
        branch = tree.get(name)
        value = _replaced(branch if isinstance(branch, dict) else {}, parts[1:], value)
    return {
        **{known: old for known, old in tree.items() if known != name},
        **({} if value is _ABSENT else {name: value}),
    }


def _leaves(values: Mapping[str, object], above: tuple[str, ...] = ()) -> Iterator[tuple[list[str], object]]:
    """Yield every value in `values`, nested or not, with the parts of its name."""
    for name, value in values.items():
        parts = (*above, *name.split("."))
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, parts)
        else:
            yield list(parts), dict(value) if isinstance(value, Mapping) else value


def _literal(text: str) -> object:
    """Parse an environment variable's text as a Python literal; other text stays."""
    words = {"true": True, "false": False, "none": None, "null": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text


def _unknown(name: str, tree: Mapping[str, Any]) -> str:
    """Make the message for a `name` that `tree` does not hold."""
    from difflib import get_close_matches

    known = [*tree, *(f"{branch}.{leaf}" for branch in tree if isinstance(tree[branch], dict) for leaf in tree[branch])]
    near = get_close_matches(name, known) or get_close_matches(name.split(".")[0], tree)
    return f"no setting {name!r}" + (f"; did you mean {' or '.join(map(repr, near))}?" if near else "")


config = Config(DEFAULTS)
"""The settings of this process."""


def is_strict() -> bool:
    """Return whether violations of a specification that known writers commit are errors.

    Otherwise such documents and chunks are read as their writers meant them, with a `ZarrRuntimeWarning`.
    """
    return bool(config.get("strict"))

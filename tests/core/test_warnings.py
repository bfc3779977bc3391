"""Every warning of the package names the line that called it, from whatever thread, and has the category it promises.

`CASES` provokes each of them; `test_every_place_that_warns_has_a_case` finds a new one without a case here.
"""

from __future__ import annotations

import ast
import asyncio
import importlib.metadata
import json
import linecache
import subprocess
import sys
import textwrap
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from enum import Enum
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pytest

import tessarr
import tessarr.as_zarr._alias
import tessarr.facade.zarr3.codecs
from tessarr import conventions, model
from tessarr.codecs.numcodecs import v3 as v3_codecs
from tessarr.common import warn as warning
from tessarr.common.strict_json import dumps
from tessarr.conventions import known
from tessarr.core.asynchronous import clock
from tessarr.core.asynchronous.sans_io import Call
from tessarr.core.claims import intents
from tessarr.errors import UnstableSpecificationWarning, ZarrDeprecationWarning, ZarrRuntimeWarning, ZarrUserWarning
from tessarr.settings import config
from tessarr.stores.local.store import LocalStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.remote.loop import run_concurrently
from tessarr.stores.virtual import branches
from tests.conformance.documents import array_document, v2_array_document
from tests.simulation.simulator import Bucket, Client

SOURCE = Path(tessarr.__file__).parent
V3 = array_document((4, 6), (2, 3), chunk_key_encoding={"name": "default"}, attributes={})
LINE = {**V3, "shape": [4], "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}}}
V2 = v2_array_document((4, 6), (2, 3))
STRUCTURED = {"name": "structured", "configuration": {"fields": [["a", "int32"]]}}
STRUCT = {"name": "struct", "configuration": {"fields": [{"name": "a", "data_type": "int32"}]}}
GROUP = {"zarr_format": 3, "node_type": "group", "attributes": {}}


class Distant(MemoryStore):
    """A store that is awaited, as one behind a network is."""

    requests_at_once = 16


class Case(NamedTuple):
    """One warning, and how to provoke it."""

    site: str
    """The module that warns, and the function there."""
    category: type[Warning]
    message: str
    provoke: Callable[[Path, pytest.MonkeyPatch], object]
    """Leads to the warning; ``open`` may be a coroutine, which is awaited."""


def stored(documents: dict[str, Any]) -> MemoryStore:
    """A store that holds `documents`."""
    store = MemoryStore()
    for key, document in documents.items():
        store.set(key, dumps(document, indent=None, sort_keys=False))
    return store


def reading(documents: dict[str, Any]) -> Callable[[Path, pytest.MonkeyPatch], object]:
    """Open the node that `documents` describe."""
    return lambda *_: tessarr.open(stored(documents), mode="r")


def reading_later(documents: dict[str, Any]) -> Callable[[Path, pytest.MonkeyPatch], object]:
    """Await the node that `documents` describe, of a local and of a remote store."""

    async def both(*_: object) -> None:
        store = stored(documents)
        distant = Distant()
        for key in store.list():
            value = store.get(key)
            assert value is not None
            distant.set(key, value)
        await tessarr.open_async(store, mode="r")
        await asyncio.create_task(tessarr.open_async(distant, mode="r"))

    return both


def v3(**members: Any) -> dict[str, Any]:
    return {"zarr.json": {**V3, **members}}


def v2(**members: Any) -> dict[str, Any]:
    return {".zarray": {**V2, **members}}


DOCUMENTS: list[tuple[str, type[Warning], str, dict[str, Any]]] = [
    (
        "core/stored/read_nodes.py:_parse",
        ZarrUserWarning,
        "Both zarr.json (Zarr format 3) and .zarray (Zarr format 2) metadata objects exist at",
        {**v3(), ".zarray": V2},
    ),
    (
        "metadata/formats.py:_parse_node",
        ZarrUserWarning,
        "an array and a group document",
        {**v2(), ".zgroup": {"zarr_format": 2}},
    ),
    (
        "metadata/formats.py:_parse_corrected",
        ZarrRuntimeWarning,
        "breaks its specification and is read as meant",
        v3(chunk_grid={"name": "regular", "configuration": {"chunk_shape": [2, [3, 3]]}}),
    ),
    (
        "metadata/v3.py:_old_names",
        ZarrRuntimeWarning,
        "is called structured",
        v3(data_type=STRUCTURED, fill_value="AAAAAA=="),
    ),
    (
        "metadata/v3.py:_old_names",
        ZarrRuntimeWarning,
        "a codec called endian",
        v3(codecs=[{"name": "endian", "configuration": {"endian": "little"}}]),
    ),
    ("metadata/v3.py:_dimension_names", ZarrRuntimeWarning, "dimension_names is null", v3(dimension_names=None)),
    (
        "metadata/v3.py:_storage_transformers",
        ZarrRuntimeWarning,
        "storage_transformers is null",
        v3(storage_transformers=None),
    ),
    (
        "metadata/v3.py:check_endian",
        ZarrRuntimeWarning,
        "without a stated byte order",
        v3(data_type=STRUCT, fill_value={"a": 0}, codecs=["bytes"]),
    ),
    (
        "metadata/consolidated.py:parse_v3",
        ZarrRuntimeWarning,
        "malformed consolidated_metadata",
        {"zarr.json": {**GROUP, "consolidated_metadata": {"must_understand": False, "metadata": 1}}},
    ),
    ("metadata/v2.py:_filters", ZarrRuntimeWarning, "an empty list of filters", v2(filters=[])),
    ("metadata/v2.py:_data_type", ZarrRuntimeWarning, "must state the unit of times", v2(dtype="<M8")),
    ("metadata/v2.py:_check_orders", ZarrRuntimeWarning, "single bytes have no byte order", v2(dtype="<i1")),
    (
        "metadata/array.py:misstated_dimensions",
        ZarrRuntimeWarning,
        "_ARRAY_DIMENSIONS is ignored",
        {**v2(), ".zattrs": {"_ARRAY_DIMENSIONS": ["y"]}},
    ),
    (
        "metadata/group.py:_parse_v2",
        ZarrRuntimeWarning,
        "unknown members",
        {".zgroup": {"zarr_format": 2, "other": 1}},
    ),
    (
        "grids/regular.py:diagnostics",
        ZarrRuntimeWarning,
        "chunk length 0",
        v3(shape=[0, 6], chunk_grid={"name": "regular", "configuration": {"chunk_shape": [0, 3]}}),
    ),
    (
        "codecs/array_to_array/transpose.py:diagnostics",
        ZarrRuntimeWarning,
        "transpose order",
        v3(codecs=[{"name": "transpose", "configuration": {"order": "F"}}, *V3["codecs"]]),
    ),
    ("dtypes/element.py:old_zero_diagnostics", ZarrRuntimeWarning, "is not Base64", v2(dtype="|S4", fill_value=0)),
]


def nested(place: Path) -> Path:
    """A v2 array that may be nested."""
    tessarr.create_array(place / "n", shape=(4, 4), chunks=(2, 2), dtype="u1", zarr_format=2)
    (place / "n" / "0").mkdir()
    return place / "n"


def above(place: Path, monkeypatch: pytest.MonkeyPatch, policy: str = "update") -> tessarr.Array:
    """An array below a consolidated group that cannot be written."""
    monkeypatch.setattr(config, "_tree", {**config.to_dict(), "consolidated": {"above_root": policy}})
    root = tessarr.create_group(place / "g")
    root.create_array("a", shape=(2,), dtype="u1")
    tessarr.consolidate_metadata(place / "g")
    update = LocalStore.update

    def refused(self: Any, key: str, change: Any) -> Any:
        if self.root == place / "g":
            raise PermissionError(key)
        return update(self, key, change)

    monkeypatch.setattr(LocalStore, "update", refused)
    return tessarr.open_array(place / "g" / "a", mode="r+")


def around(**given: Any) -> dict[str, Any]:
    """Arguments for an array with a codec around sharding."""
    return {"shape": (4,), "chunks": (2,), "dtype": "u1", "codecs": AROUND_SHARDING, **given}


AROUND_SHARDING = [
    {
        "name": "sharding_indexed",
        "configuration": {
            "chunk_shape": [1],
            "codecs": ["bytes"],
            "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        },
    },
    "crc32c",
]
EARLY_TRANSPOSE = {"name": "transpose", "configuration": {"order": "F"}}
MIXED = {"zarr.json": GROUP, "a/.zgroup": {"zarr_format": 2}}
PAYLOAD = np.array(0x7FC00001, dtype="u4").view("f4")[()]
SMALL: dict[str, Any] = {"shape": (4,), "dtype": "u1"}


def offered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an installed package offer what is not a convention."""
    point = SimpleNamespace(name="other", value="other:thing", load=lambda: 1)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [point])
    monkeypatch.setattr(known, "_TABLES", {})


def offered_conventions(_: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    offered(monkeypatch)
    return conventions.conventions()


async def _resized_later(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = await tessarr.create_array_async({}, **SMALL)
    await array.resize_async((2,), delete_outside_chunks=False)


def abandoned() -> Client:
    """An array on which an append began in 1970 and did not end."""
    store = Client("a", Bucket())
    region = {"must_understand": False, "axis": 0, "stop": 8, "reserved": [[4, 8, "gone", 0]]}
    store.set("zarr.json", dumps({**LINE, "tessarr_append": region}))
    return store


def _waited_long(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = abandoned()
    array = tessarr.open_array(store, mode="r+")

    def owner_comes_back() -> None:
        document = json.loads(store.bucket.values["zarr.json"])
        pending = document.pop("tessarr_append")
        store.set("zarr.json", dumps({**document, "shape": [pending["stop"]]}))

    looks = iter([lambda: None])
    pause = Call(lambda: next(looks, owner_comes_back)(), lambda: asyncio.sleep(0), waits=True)
    monkeypatch.setattr(clock.CLOCK, "pause", lambda _: pause)
    array.append([1, 2, 3, 4])  # tessarr.Array.append


def _ended_late(old: bytes | None, new: bytes, found: bytes) -> None:
    """Write to an array of a transaction that is committed and not ended.

    Where it has to replace `old` by `new`, or to create `new`, there is `found` of another program. It is the array itself, or
    another one.
    """
    store = Client("a", Bucket())
    key = "zarr.json" if intents.intent_in(found, "zarr.json") else "other/zarr.json"
    own = intents.Change(dumps(LINE), dumps({**LINE, "shape": [8]}))
    record = intents.Record(
        id="x", state="committed", since=0, changes={"zarr.json": own, key: intents.Change(old, new)}
    )
    store.set(f"{intents.RECORD}x", record.dumps())
    store.set("zarr.json", record.claimed("zarr.json"))
    if old is None:
        store.set(intents.claim_of(key), record.claimed(key))
    store.set(key, found)
    tessarr.open_array(store, mode="r+").attrs["x"] = 1


def _changed_twice(place: Path, _: pytest.MonkeyPatch) -> None:
    """Another program has given the array another shape, and kept the intent."""
    old, new, found = ({**LINE, "shape": [n]} for n in (4, 8, 12))
    _ended_late(dumps(old), dumps(new), dumps(intents.with_intent(found, intents.Intent("x", 0))))


def _created_twice(place: Path, _: pytest.MonkeyPatch) -> None:
    """Another program has created the same array."""
    _ended_late(None, dumps(LINE), dumps({**LINE, "attributes": {"by": "another"}}))


def _replaced_since(place: Path, _: pytest.MonkeyPatch) -> None:
    """Another program has replaced a document without the intent."""
    _ended_late(dumps(LINE), dumps({**LINE, "shape": [8]}), dumps({**LINE, "attributes": {"by": "another"}}))


async def _nested_later(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    array = await tessarr.open_array_async(nested(place))
    await array.read_async((0, 0))


def _as_dataset(place: Path, _: pytest.MonkeyPatch) -> object:
    import tessarr.xarray

    tessarr.open_group(place, mode="w").create_array("x", data=np.arange(3), dimension_names=["x"])
    return tessarr.xarray.open_dataset(place)


def _misaligned(place: Path, _: pytest.MonkeyPatch) -> object:
    import xarray

    import tessarr.xarray

    ds = xarray.Dataset({"a": ("x", np.arange(8))}).chunk({"x": 4})
    return tessarr.xarray.to_zarr(ds, place, encoding={"a": {"chunks": (3,)}})


ARGUMENTS = "core/creation/zarr_python_arguments.py"


def as_zarr_python(call: Callable[[], object]) -> Callable[[Path, pytest.MonkeyPatch], object]:
    """Call with the settings that `tessarr.as_zarr` sets."""

    def provoke(place: Path, patch: pytest.MonkeyPatch) -> None:
        before = config.get("zarr_python")
        config.set({f"zarr_python.{name}": True for name in ("arguments", "warnings", "documents")})
        try:
            made = call()
            if asyncio.iscoroutine(made):
                asyncio.run(made)
        finally:
            config.set({"zarr_python": before})

    return provoke


def zlib_that_zarr_python_warns_of() -> object:
    """A codec of numcodecs, made as if zarr-python's release for the running Python warned of it."""
    with mock.patch.object(v3_codecs, "ZARR_PYTHON_WARNS", new=True):
        return tessarr.codecs.numcodecs.Zlib(level=1)


class Other(Enum):
    """An enumeration of another package."""

    little = "little"


def left_open(*_: object) -> None:
    """Begin a transaction, and drop it without an end."""
    tx: Any = tessarr.transaction(MemoryStore()).__enter__()
    tx.__del__()  # what the end of a tessarr.Transaction leads to


def left_uncommitted(array: tessarr.Array) -> None:
    """Write to a versioned array, and drop it without a commit."""
    array[...] = 1
    array._bound.store.__del__()  # type: ignore[attr-defined]  # what the end of a tessarr.Array leads to
    array.commit()


class ChangedSession:
    """A session of Icechunk with changes."""

    has_uncommitted_changes = True

    def commit(self, message: str, *, rebase_with: object) -> str:
        """See `tessarr.stores.virtual.branches.Session`."""
        return message

    def discard_changes(self) -> None:
        """Do nothing."""


def dropped_branch() -> None:
    """Drop what keeps the session of a branch that a URL opened."""
    held = [branches.opened(ChangedSession(), "file:///r|icechunk:")]
    held.clear()  # what the end of a tessarr.Array leads to


CASES = [
    *(Case(site, kind, message, reading(documents)) for site, kind, message, documents in DOCUMENTS),
    *(Case(site, kind, message, reading_later(documents)) for site, kind, message, documents in DOCUMENTS),
    *(
        Case(
            "metadata/formats.py:_as_zarr_python_reads",
            ZarrUserWarning,
            "The stored chunk shape [0, 3] is invalid",
            provoke,
        )
        for provoke in (
            as_zarr_python(lambda: tessarr.open(stored(v2(chunks=[0, 3])))),
            as_zarr_python(lambda: tessarr.open_async(stored(v2(chunks=[0, 3])))),
        )
    ),
    *(
        Case("core/creation/arrays.py:_warn_v1", ZarrDeprecationWarning, "Zarr v1 is deprecated", provoke)
        for provoke in (
            lambda *_: tessarr.create_array({}, **SMALL, zarr_format=1),
            lambda *_: tessarr.create(4, store={}, zarr_format=1),
            lambda *_: tessarr.create_array_async({}, **SMALL, zarr_format=1),
            lambda *_: tessarr.create_array_async(Distant(), **SMALL, zarr_format=1),
        )
    ),
    *(
        Case(
            "core/stored/read_nodes.py:warn_of_nested_chunks",
            ZarrRuntimeWarning,
            "yet there is a directory 0",
            provoke,
        )
        for provoke in (lambda place, _: tessarr.open_array(nested(place))[0, 0], _nested_later)
    ),
    Case(
        "xarray/opening.py:open_place", ZarrRuntimeWarning, "Failed to open Zarr store with consolidated", _as_dataset
    ),
    Case("xarray/writer.py:_warn_of_shared", ZarrUserWarning, "are written by more than one task", _misaligned),
    *(
        Case("core/stored/consolidated.py:_warn_of_stale", ZarrRuntimeWarning, "is stale", provoke)
        for provoke in (
            lambda place, patch: above(place, patch, "warn").attrs.update({"n": 1}),
            lambda place, patch: above(place, patch, "warn").attrs.update_async({"n": 1}),
        )
    ),
    *(
        Case("core/stored/consolidated.py:_follow_outside", ZarrRuntimeWarning, "could not be kept in step", provoke)
        for provoke in (
            lambda place, patch: above(place, patch).attrs.update({"n": 1}),
            lambda place, patch: above(place, patch).attrs.update_async({"n": 1}),
        )
    ),
    *(
        Case("core/creation/metadata.py:_fitted", ZarrUserWarning, "disables partial reads and writes", provoke)
        for provoke in (
            lambda *_: tessarr.create(**around(store={})),
            lambda *_: tessarr.create_async(**around(store={})),
        )
    ),
    *(
        Case("core/creation/metadata.py:_report_diagnostics", ZarrRuntimeWarning, "transpose order", provoke)
        for provoke in (
            lambda *_: tessarr.create_array({}, shape=(2, 2), dtype="u1", filters=[EARLY_TRANSPOSE]),
            lambda *_: tessarr.create_array_async({}, shape=(2, 2), dtype="u1", filters=[EARLY_TRANSPOSE]),
        )
    ),
    *(
        Case("core/creation/metadata.py:_dimension_names", ZarrUserWarning, "should be distinct", provoke)
        for provoke in (
            lambda *_: tessarr.create_array({}, shape=(2, 2), dtype="u1", dimension_names=("x", "x")),
            lambda *_: tessarr.create_array_async(Distant(), shape=(2, 2), dtype="u1", dimension_names=("x", "x")),
        )
    ),
    *(
        Case(
            "core/array_parts/resize.py:_resize_locked_steps",
            ZarrUserWarning,
            "outside the new shape are kept",
            provoke,
        )
        for provoke in (
            lambda *_: tessarr.create_array({}, **SMALL).resize((2,), delete_outside_chunks=False),
            _resized_later,
        )
    ),
    Case(
        "core/array_parts/append_reserved.py:_void_steps",
        ZarrRuntimeWarning,
        "were reserved and never stored",
        lambda *_: tessarr.open_array(abandoned(), mode="r+").append([1, 2, 3, 4], on_hole="void"),
    ),
    *(
        Case("core/claims/settle.py:complete_steps", ZarrRuntimeWarning, message, provoke)
        for message, provoke in (
            ("changed zarr.json at the same time", _changed_twice),
            ("replaced other/zarr.json, which another program created", _created_twice),
            ("['other/zarr.json'] may lack what a transaction committed", _replaced_since),
        )
    ),
    Case(
        "core/array_parts/append_reserved.py:handle_abandoned_steps",
        ZarrRuntimeWarning,
        "has not ended; waiting for it",
        _waited_long,
    ),
    *(
        Case("stores/path.py:check_node_name", ZarrUserWarning, "is not ASCII", provoke)
        for provoke in (
            lambda *_: tessarr.create_array({}, name="ä", **SMALL, zarr_format=2),
            lambda *_: tessarr.create_group_async(Distant(), path="ä", zarr_format=2),
        )
    ),
    *(
        Case("stores/path.py:_warn_of_reserved", ZarrUserWarning, "which Zarr v3 reserves", provoke)
        for provoke in (
            lambda *_: tessarr.open_group(stored({"zarr.json": GROUP, "__a/zarr.json": V3}))["__a"],
            lambda *_: tessarr.create_array({}, name="__a", **SMALL),
            lambda *_: tessarr.create_group_async(Distant(), path="__a"),
        )
    ),
    *(
        Case(site, category, message, as_zarr_python(provoke))
        for site, category, message, provoke in (
            (
                f"{ARGUMENTS}:check_without_effect",
                ZarrRuntimeWarning,
                "synchronizer is not yet implemented",
                lambda: tessarr.create(4, store={}, synchronizer=object()),
            ),
            *(
                (f"{ARGUMENTS}:check_without_effect", ZarrRuntimeWarning, "synchronizer is not yet implemented", call)
                for call in (
                    lambda: tessarr.open_group({}, synchronizer=object()),
                    lambda: tessarr.group({}, synchronizer=object()),
                    lambda: tessarr.open_group_async({}, synchronizer=object()),
                )
            ),
            *(
                (f"{ARGUMENTS}:format_given", ZarrDeprecationWarning, "zarr_version is deprecated", call)
                for call in (
                    lambda: tessarr.create(4, store={}, zarr_version=2),
                    lambda: tessarr.open_async(stored({"zarr.json": V3}), zarr_version=3),
                )
            ),
            (
                f"{ARGUMENTS}:check_compressor",
                ZarrUserWarning,
                "The `compressor` argument is deprecated",
                lambda: tessarr.create_group({}).create_array("a", **SMALL, compressor=None),
            ),
            (
                f"{ARGUMENTS}:check_write_empty_chunks",
                ZarrRuntimeWarning,
                "The `write_empty_chunks` keyword argument is deprecated",
                lambda: tessarr.create_async(4, store={}, write_empty_chunks=True),
            ),
            (
                f"{ARGUMENTS}:check_write_empty_chunks",
                ZarrRuntimeWarning,
                "The `write_empty_chunks` keyword argument is deprecated",
                lambda: tessarr.open_array(stored({"zarr.json": V3}), write_empty_chunks=True),
            ),
            (
                "core/array_parts/chunk_properties.py:compressor",
                ZarrDeprecationWarning,
                "Use Array.compressors instead",
                lambda: tessarr.create_array({}, **SMALL, zarr_format=2).compressor,
            ),
            (
                f"{ARGUMENTS}:check_create",
                ZarrUserWarning,
                "given both by itself and in config",
                lambda: tessarr.create(4, store={}, write_empty_chunks=True, config={}),
            ),
            (
                f"{ARGUMENTS}:order_of",
                ZarrRuntimeWarning,
                "The `order` keyword argument has no effect",
                lambda: tessarr.create_array({}, **SMALL, order="F"),
            ),
            (
                "codecs/members.py:plain_value",
                ZarrDeprecationWarning,
                "Passing an enum to BytesCodec",
                lambda: tessarr.codecs.BytesCodec(Other.little),  # type: ignore[arg-type]
            ),
            (
                "dtypes/parse.py:_from_native",
                ZarrUserWarning,
                "the padding of",
                lambda: tessarr.create_array({}, shape=2, dtype=np.dtype("i1,i8", align=True)),
            ),
            (
                "facade/zarr3/_enumerations.py:__getattr__",
                ZarrDeprecationWarning,
                "Endian.little is deprecated",
                lambda: tessarr.facade.zarr3.codecs.Endian.little,
            ),
            (
                "core/creation/metadata.py:_automatic_shards",
                ZarrUserWarning,
                "Automatic shard shape inference is experimental",
                lambda: tessarr.create_array_async({}, shape=8, chunks=2, shards="auto", dtype="u1"),
            ),
            (
                "dtypes/unstable.py:warn_of_unstable",
                UnstableSpecificationWarning,
                "does not have a Zarr V3 specification",
                lambda: tessarr.create_array({}, shape=4, dtype="S4"),
            ),
            (
                "core/creation/shorthands.py:consolidate_metadata",
                ZarrUserWarning,
                "Consolidated metadata is currently not part in the Zarr format 3",
                lambda: tessarr.consolidate_metadata(tessarr.create_group({}, path="a/b").store),
            ),
            (
                "core/creation/shorthands.py:_source_options",
                ZarrUserWarning,
                "The existing order='F' of the source Zarr format 2 array will be ignored",
                lambda: tessarr.from_array({}, data=tessarr.ones(4, store={}, zarr_format=2, order="F"), zarr_format=3),
            ),
            (
                "core/creation/shorthands.py:tree",
                ZarrDeprecationWarning,
                "Use Group.tree instead.",
                lambda: tessarr.tree(tessarr.create_group({})),
            ),
            (
                "core/group_parts/group_methods.py:array",
                ZarrDeprecationWarning,
                "Use Group.create_array instead.",
                lambda: tessarr.create_group({}).array("a", [1, 2]),
            ),
            (
                "core/array.py:create",
                ZarrDeprecationWarning,
                "Use zarr.create_array instead.",
                lambda: tessarr.Array.create({}, shape=4),
            ),
            (
                "core/asynchronous/async_array.py:create",
                ZarrDeprecationWarning,
                "Use zarr.api.asynchronous.create_array instead.",
                lambda: tessarr.AsyncArray.create({}, shape=4),
            ),
            (
                "core/group_parts/group_methods.py:create_dataset",
                ZarrDeprecationWarning,
                "Use Group.create_array instead.",
                lambda: tessarr.create_group({}).create_dataset("a", shape=4),
            ),
            (
                "core/group_parts/group_methods.py:require_dataset",
                ZarrDeprecationWarning,
                "Use Group.require_array instead.",
                lambda: tessarr.create_group({}).require_dataset("a", shape=4),
            ),
            (
                "codecs/numcodecs/v3.py:__init__",
                ZarrUserWarning,
                "Numcodecs codecs are not in the Zarr version 3 specification",
                zlib_that_zarr_python_warns_of,
            ),
        )
    ),
    Case(
        "as_zarr/_alias.py:exec_module",
        ZarrDeprecationWarning,
        "zarr.creation is deprecated",
        lambda *_: tessarr.as_zarr._alias.Alias(3).exec_module(SimpleNamespace(__name__="zarr.creation")),
    ),
    Case(
        "conventions/known.py:_installed",
        ZarrRuntimeWarning,
        "is not a tessarr.conventions.Convention",
        offered_conventions,
    ),
    *(
        Case("core/stored/model_io.py:_mixed", ZarrUserWarning, "it is left out", provoke)
        for provoke in (
            lambda *_: model.from_store(stored(MIXED), zarr_format=3),
            lambda *_: asyncio.to_thread(lambda: model.from_store(stored(MIXED), zarr_format=3)),
        )
    ),
    Case("transactions/transaction.py:__del__", ResourceWarning, "was dropped before its end", left_open),
    Case(
        "stores/transformed/versioned.py:__del__",
        ZarrUserWarning,
        "and not committed",
        lambda *_: left_uncommitted(
            tessarr.create_array({}, **SMALL, storage_transformers=[{"name": "tessarr.versioned"}])
        ),
    ),
    Case(
        "stores/virtual/branches.py:_warn_of_loss",
        ZarrUserWarning,
        "was not committed, and is lost",
        lambda *_: dropped_branch(),
    ),
    *(
        Case("metadata/array.py:__post_init__", ZarrRuntimeWarning, "payload or sign of a NaN", provoke)
        for provoke in (
            lambda *_: tessarr.create_array({}, shape=4, dtype="f4", fill_value=PAYLOAD, zarr_format=2),
            lambda *_: tessarr.create_array_async({}, shape=4, dtype="f4", fill_value=PAYLOAD, zarr_format=2),
        )
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.message)
def test_a_warning_names_the_caller_and_has_its_category(
    case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def awaited(call: Coroutine[Any, Any, object]) -> None:
        await call

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = case.provoke(tmp_path, monkeypatch)
        if asyncio.iscoroutine(result):
            asyncio.run(awaited(result))
    (found, *_) = matching = [item for item in caught if case.message in str(item.message)]
    assert found.category is case.category
    for item in caught:  # what else there is to warn of must be as right
        assert item.category is case.category or issubclass(item.category, ZarrUserWarning | ZarrDeprecationWarning), (
            item
        )
        assert item.filename == __file__, item
    for item in matching:
        line = linecache.getline(item.filename, item.lineno)
        assert any(
            word in line for word in ("tessarr.", "model.", "conventions.", "await ", "asyncio.run", ".attrs")
        ), line


RETURNED = {
    "metadata/v3.py:check_endian",
    "metadata/array.py:misstated_dimensions",
    "grids/regular.py:diagnostics",
    "codecs/array_to_array/transpose.py:diagnostics",
    "dtypes/element.py:old_zero_diagnostics",
}
"""Functions and attributes of extension points whose value says what there is to warn of."""
PASSED_ON = {
    "metadata/field.py": {"tolerate", "diagnose"},
    "metadata/v3.py": {"_codecs", "_extension", "_check_chain"},
    "metadata/v2.py": {"resolve_array", "_grid"},
    "metadata/array.py": {"with_attributes"},
    "common/warn.py": {"report", "warn_as_zarr_python"},
}
"""Functions that pass on what others say."""


WARNING = frozenset(("warn", "warn_as_zarr_python", "Diagnostic", "doc.tolerate", "doc.diagnose"))
"""The calls that issue a warning, or make a diagnostic."""


def sites() -> Counter[str]:
    """``file:function`` of every call that issues a warning, or makes a diagnostic of its own."""
    found: Counter[str] = Counter(RETURNED)
    for path in SOURCE.rglob("*.py"):
        name = path.relative_to(SOURCE).as_posix()
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                continue
            if function.name in PASSED_ON.get(name, ()):
                continue
            for node in ast.walk(function):
                if isinstance(node, ast.Call) and ast.unparse(node.func) in WARNING:
                    found[f"{name}:{function.name}"] += 1
    return found


def unseen() -> Iterator[str]:
    """Every mention of what warns that `sites` does not see: by another name, outside of functions, or passed on as a value."""
    names = {name.rpartition(".")[2] for name in WARNING}
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
        within = {id(node) for function in functions for node in ast.walk(function)}
        calls = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        types = [node.annotation for node in ast.walk(tree) if isinstance(node, ast.arg | ast.AnnAssign)]
        types += [function.returns for function in functions]
        in_types = {id(node) for kind in types if kind is not None for node in ast.walk(kind)}
        for node in ast.walk(tree):
            if isinstance(node, ast.alias) and node.asname and node.name in names:
                yield f"{path.relative_to(SOURCE).as_posix()}: {ast.unparse(node)}"
            if not isinstance(node, ast.Name | ast.Attribute) or id(node) in in_types:
                continue
            mention = ast.unparse(node)
            seen = mention in WARNING and {id(node)} <= calls & within
            if mention.rpartition(".")[2] in names and not seen:
                yield f"{path.relative_to(SOURCE).as_posix()}: {mention}"


def test_every_place_that_warns_has_a_case() -> None:
    messages = {(case.site, case.message) for case in CASES}
    assert Counter(site for site, _ in messages) == sites()


def test_nothing_warns_where_the_search_for_cases_does_not_look() -> None:
    passed_on = {
        "metadata/field.py: self.diagnose",  # by `tolerate`
        "metadata/array.py: Diagnostic",  # of what `misstated_dimensions` returns
    }
    assert sorted(unseen()) == sorted(passed_on)


def test_a_line_is_warned_once_and_another_line_again() -> None:
    store = stored(v3(dimension_names=None))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            tessarr.open(store, mode="r")
        tessarr.open(store, mode="r")
    first, second = (item.lineno for item in caught)
    assert second == first + 1


def test_a_worker_thread_of_ours_warns_at_the_caller_s_line() -> None:
    met = threading.Barrier(2, timeout=60)

    def work(_: int) -> None:
        met.wait()  # so that one of the two is in a worker thread
        warning.warn("from a thread", ZarrUserWarning)

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run_concurrently([partial(_as_ours(work), number) for number in range(2)])
    assert [Path(item.filename).name for item in caught] == [Path(__file__).name] * 2


def _as_ours(work: Callable[[int], None]) -> Callable[[int], None]:
    """`work` as if it were written in a module of the package."""
    from types import FunctionType

    assert isinstance(work, FunctionType)
    names = {**work.__globals__, "__name__": "tessarr.core.somewhere"}
    return FunctionType(work.__code__, names, work.__name__, None, work.__closure__)


@pytest.mark.parametrize("call", ["tessarr.create({shape})", "asyncio.run(tessarr.create_async({shape}))"])
def test_python_s_own_filters_show_the_deprecation_of_v1_to_a_script(call: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    line = call.format(shape="4, store={}, zarr_format=1")
    script.write_text(f"import asyncio\nimport tessarr\n{line}\n")
    done = subprocess.run([sys.executable, script], check=True, capture_output=True, text=True)
    assert f"{script}:3: ZarrDeprecationWarning: Zarr v1 is deprecated" in done.stderr
    assert line in done.stderr


def test_a_package_that_uses_this_one_is_not_told_of_deprecations_by_python_s_own_filters(tmp_path: Path) -> None:
    (tmp_path / "other.py").write_text("import tessarr\ntessarr.create(4, store={}, zarr_format=1)\n")
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent("import sys; sys.path.insert(0, sys.argv[1]); import other"), tmp_path],
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stderr == ""


@pytest.mark.parametrize("consolidated", [False, True])
@pytest.mark.parametrize("make", [MemoryStore, Distant])
def test_a_list_of_the_members_warns_once_of_each(make: Callable[[], MemoryStore], consolidated: bool) -> None:
    """Though `list` asks for the length of the group as well."""
    store = make()
    with config.set({"names.warn_reserved": False}):
        tessarr.create_array(store, name="__x", shape=(2,), dtype="i1")
        if consolidated:
            tessarr.consolidate_metadata(store)
    group = tessarr.open_group(store, mode="r")
    assert len(group) == 1
    with pytest.warns(ZarrUserWarning) as caught:
        assert list(group) == ["__x"]
    assert len(caught) == 1

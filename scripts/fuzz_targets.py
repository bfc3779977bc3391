"""Define the Python targets of `scripts/fuzz.py`: one function of `TARGETS` for each target.

A target has members; each has its seeds and the function that is fuzzed. That function may raise a `TessarrError`;
anything else it raises is a finding, as are crashes, and work that takes long or much memory. The first line of an input
names the member that it is for.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from fixtures import cases
from fuzz_containers import containers
from fuzz_kept import kept
from fuzz_members import Member, Target, damage_bytes, damage_json, damage_packed, pack, unpack
from fuzz_written import written

import tessarr
from tessarr import registry
from tessarr.cli.verbs.doctor import sample
from tessarr.core.claims.intents import RECORD, Change, Record, Region
from tessarr.errors import ConflictError, TessarrError
from tessarr.storage import ConditionalStore
from tessarr.stores.base import ANY
from tessarr.stores.local.transactions.journal import Journal, RootJournal, Step, SwapJournal, parse
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.virtual.reference import ReferenceStore
from tessarr.stores.zip.store import ZipStore
from tessarr.tools.check import check
from tessarr.tools.repair import repair

FIXTURES = Path(__file__).resolve().parent.parent / "tests" / "fixtures"
LARGEST = 200_000
"""Bytes of a seed."""


# -- whole arrays and groups ---------------------------------------------------------------------------------------------


def _arrays() -> Iterator[tuple[int, dict[str, bytes]]]:
    """Yield format and values of every small array of other writers."""
    for case in cases(FIXTURES):
        folder = case.source / case.entry["path"]
        if case.entry["expect"] != "values" or not folder.is_dir():
            continue
        files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
        if sum(path.stat().st_size for path in files) < LARGEST:
            names = {path.name for path in files}
            version = 3 if "zarr.json" in names else 2 if ".zarray" in names else 1
            yield version, {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def look(node: Any) -> None:
    """Read one corner of an array, or list a group, and format its summary."""
    str(node.attrs.asdict())
    if isinstance(node, tessarr.Group):
        for _, member in zip(range(20), node.members(), strict=False):
            str(member)
        return
    str(node.info)
    node[tuple(slice(0, 64 if node.ndim <= 2 else 8 if node.ndim <= 4 else 1) for _ in node.shape)]


def arrays(*, disk: bool) -> Member:
    """Fuzz documents and chunks of arrays. On disk they are read by the native engine itself."""

    def run(data: bytes) -> None:
        values = unpack(data)
        if not disk:
            with tessarr.config.set({"engine": "reference"}):
                look(tessarr.open(MemoryStore({**values}), mode="r"))
            return
        with tempfile.TemporaryDirectory(prefix="tessarr-fuzz-") as folder:
            for key, value in values.items():
                path = Path(folder, key)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(value)
            look(tessarr.open(folder, mode="r"))

    return Member([pack(values) for _, values in _arrays()], run, damage_packed)


def metadata(version: int) -> Member:
    """Fuzz the opening of arrays and groups without chunks."""
    documents = {1: ("meta", "attrs"), 2: (".zarray", ".zattrs", ".zgroup"), 3: ("zarr.json",)}[version]
    seeds = {
        pack({key: value for key, value in values.items() if key in documents})
        for number, values in _arrays()
        if number == version and documents[0] in values
    }
    for path in sorted(FIXTURES.rglob(".zgroup" if version == 2 else "zarr.json"))[:40] if version > 1 else []:
        near = {name: path.with_name(name) for name in documents}
        seeds.add(pack({name: file.read_bytes() for name, file in near.items() if file.exists()}))

    def run(data: bytes) -> None:
        node = tessarr.open(MemoryStore({**unpack(data)}), mode="r")
        look(node)
        if isinstance(node, tessarr.Array):
            node.metadata.to_dict()

    return Member(sorted(seeds), run, damage_packed)


def consolidated() -> Member:
    """Fuzz consolidated metadata of both formats."""
    seeds = []
    for version in (2, 3):
        store = MemoryStore()
        group = tessarr.create_group(store, zarr_format=version, attributes={"a": 1})
        group.create_group("g").create_array("x", shape=(4, 4), chunks=(2, 2), dtype="i4", attributes={"units": "K"})
        group.create_array("y", shape=(4,), dtype="f8")
        tessarr.consolidate_metadata(store)
        seeds.append(pack({key: bytes(store.get(key) or b"") for key in store.list()}))

    def run(data: bytes) -> None:
        group = tessarr.open_group(MemoryStore({**unpack(data)}), mode="r")
        for _, node in group.members(max_depth=None):
            look(node)
        str(group.tree())

    return Member(seeds, run, damage_packed)


# -- archives and references ---------------------------------------------------------------------------------------------


def zips() -> Member:
    """Fuzz zip archives."""
    seeds = []
    for _, values in list(_arrays())[::12]:
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            made = io.BytesIO()
            with zipfile.ZipFile(made, "w", method) as archive:
                for key, value in values.items():
                    archive.writestr(zipfile.ZipInfo(key), value)
            seeds.append(made.getvalue())
    seeds = sorted(seeds, key=len)[:30]

    def run(data: bytes) -> None:
        store = ZipStore(io.BytesIO(data))
        try:
            for key in list(store.list())[:20]:
                store.get(key)
            look(tessarr.open(store, mode="r"))
        finally:
            store.close()

    return Member(seeds, run, damage_bytes)


def references() -> Member:
    """Fuzz reference documents of both versions, with templates and generated keys, that refer to one local file."""
    with tempfile.NamedTemporaryFile(prefix="tessarr-fuzz-", delete=False) as file:
        file.write(bytes(range(200)))
    array = json.dumps(
        {"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "compressor": None, "filters": None}
        | {"fill_value": 0, "order": "C"}
    )
    refs = {".zgroup": '{"zarr_format": 2}', "a/.zarray": array, "a/0": ["{{u}}", 0, 8], "a/1": "base64:AAAAAAAAAAA="}
    generated = {
        "key": "b/{{i}}.{{j}}",
        "url": "{{f(c='x')}}",
        "offset": "{{(i + 1) * 10}}",
        "length": "10",
        "dimensions": {"i": {"stop": 2}, "j": [0, 3]},
    }
    plain = {key: [file.name, *value[1:]] if isinstance(value, list) else value for key, value in refs.items()}
    seeds = [
        {"version": 1, "templates": {"u": file.name, "f": f"{file.name}{{{{c}}}}"}, "gen": [generated], "refs": refs},
        plain,
        {"version": 1, "refs": plain},
    ]

    def run(data: bytes) -> None:
        try:
            document = json.loads(data)
        except (ValueError, RecursionError):
            return
        # A changed address may lead anywhere; only what lies here is fetched.
        store = ReferenceStore(document)
        for key in list(store.list())[:10]:
            found = store.references.find(key)
            if getattr(found, "url", file.name) == file.name:
                store.get(key)
        if "://" not in data.decode("utf-8", "replace"):
            look(tessarr.open(store, mode="r"))

    return Member([json.dumps(seed).encode() for seed in seeds], run, damage_json)


# -- decoders of the reference engine ------------------------------------------------------------------------------------


def decoder(name: str) -> Member:
    """Fuzz the reference engine's decoding of chunks that one codec encoded."""
    made = [chunk(name, times) for times in (1, 40, 700)]
    seeds = [json.dumps(times).encode() + b"\n" + value for times, (_, _, value) in enumerate(made)]
    stores = [(MemoryStore(documents), key) for documents, key, _ in made]
    with tessarr.config.set({"engine": "reference"}):
        opened = [tessarr.open_array(store, mode="r") for store, _ in stores]

    def run(data: bytes) -> None:
        number, _, value = data.partition(b"\n")
        at = int(number) if number.isdigit() and len(number) == 1 else 0
        store, key = stores[at % len(stores)]
        store.set(key, value)
        array = opened[at % len(stores)]
        assert np.shape(array[...]) == array.shape

    return Member(seeds, run, damage_bytes)


def chunk(name: str, times: int) -> tuple[dict[str, Any], str, bytes]:
    """Return the stored values of an array with one codec without its only chunk, the key of the chunk, and the chunk."""
    found = sample(name, times)
    if found is None:
        raise LookupError(f"{name} cannot be tried here")
    arguments, values = found
    store = MemoryStore()
    with tessarr.config.set({"engine": "reference"}):
        tessarr.create_array(store, **arguments)[...] = values
    key = next(key for key in store.list() if not key.endswith("zarr.json"))
    stored = {other: bytes(store.get(other) or b"") for other in store.list()}
    return stored, key, stored.pop(key)


def decoders() -> Target:
    """Fuzz every registered codec whose package is installed."""
    members, missing = {}, {}
    for name in registry.names("codec"):
        try:
            if sample(name) is None:
                missing[name] = "is always refused"
            else:
                members[name] = decoder(name)
        except (TessarrError, ImportError) as error:
            missing[name] = str(error).splitlines()[0]
    return Target(members, missing)


# -- what writers leave -------------------------------------------------------------------------------------------------


def journal() -> Member:
    """Fuzz journals of transactions: as they are, and with the digest that is right for the damaged steps."""
    steps = [Step(f"a/c/{number}", old, "2f:1a:5") for number, old in enumerate((None, "1:2:3"))]
    header, *lines, end = Journal("0123456789ab", "2f", steps).dump().splitlines(keepends=True)
    seeds = [json.dumps([json.loads(line) for line in (header, *lines, *rest)]).encode() for rest in ((), (end,))]
    seeds.append(
        json.dumps([json.loads(RootJournal("0123456789ab", "2f", ["a"], ["b"]).dump().partition(b"\n")[0])]).encode()
    )
    swapped = SwapJournal("0123456789ab", "2f", ".a.0123456789ab.tessarr-tmp", "2e", steps, ["a/c/9"])
    seeds.append(json.dumps([json.loads(line) for line in swapped.dump().splitlines()[:-1]]).encode())

    def run(data: bytes) -> None:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError):
            parse(data)
            return
        found = found if isinstance(found, list) else [found]
        body = b"".join(json.dumps(line).encode() + b"\n" for line in found)
        digest = hashlib.sha256(body).hexdigest()
        parse(body + json.dumps({"sha256": digest}).encode() + b"\n")

    return Member(seeds, run, damage_json)


class Bucket(ConditionalStore):
    """Values with versions, and no lock: as object storage."""

    url = "fuzz://bucket"

    def __init__(self, values: dict[str, bytes]) -> None:
        self.stored = values

    def get(self, key: str, byte_range: Any = None) -> Any:
        """See `Store`."""
        value = self.stored.get(key)
        return value if value is None or byte_range is None else value[slice(*byte_range.bounds(len(value)))]

    def version(self, key: str) -> str | None:
        """See `Store`."""
        value = self.stored.get(key)
        return None if value is None else hashlib.md5(value, usedforsecurity=False).hexdigest()

    def set(self, key: str, value: Any, *, if_match: Any = ANY) -> None:
        """See `Store`."""
        if if_match is not ANY and self.version(key) != if_match:
            raise ConflictError("another writer was faster", key=key)
        self.stored[key] = bytes(value)

    def delete(self, key: str) -> None:
        """See `Store`."""
        self.stored.pop(key, None)

    def list(self, prefix: str = "") -> Iterator[str]:
        """See `Store`."""
        return iter([key for key in self.stored if key.startswith(prefix)])


def records() -> Member:
    """Fuzz the records, intents and claims of transactions in object storage, and the reservations of appends."""
    made = Bucket({})
    root = tessarr.create_group(made)
    for name in ("a", "b"):
        root.create_array(name, shape=(2,), chunks=(1,), dtype="u1")
    old, new = (made.stored[f"{name}/zarr.json"] for name in "ab")
    changes = {"a/zarr.json": Change(old, old, Region(0, 3)), "b/zarr.json": Change(None, new)}
    seeds = []
    for state in ("pending", "committed", "void"):
        for since in (0, 1 << 40):
            record = Record(id="0123456789abcdef", state=state, since=since, changes=changes)
            claimed = {record.claim_key(key): record.claimed(key) for key in changes}
            seeds.append(pack({"zarr.json": made.stored["zarr.json"], **claimed, RECORD + record.id: record.dumps()}))

    def run(data: bytes) -> None:
        values = unpack(data)
        look(tessarr.open(Bucket(values).with_read_only(True), mode="r"))
        array = tessarr.open_array(Bucket(values), path="a", mode="r+")
        array.attrs["n"] = 1
        repair(check(Bucket(values)), Bucket(values), dry_run=False)

    return Member(seeds, run, damage_packed)


# -- targets -------------------------------------------------------------------------------------------------------------


def documents() -> Target:
    """Fuzz the documents of arrays and groups, of every format."""
    members = {f"v{version}": metadata(version) for version in (3, 2, 1)}
    return Target({**members, "consolidated": consolidated()}, {})


TARGETS: dict[str, Callable[[], Target]] = {
    "documents": documents,
    "python-codecs": decoders,
    "arrays": lambda: Target({"on-disk": arrays(disk=True), "reference-engine": arrays(disk=False)}, {}),
    "pending": lambda: Target({"journal": journal(), "records": records()}, {}),
    "written": written,
    "kept": lambda: kept([values for _, values in _arrays()]),
    "containers": lambda: containers(look),
    "archives": lambda: Target({"zip": zips(), "reference-file": references()}, {}),
}

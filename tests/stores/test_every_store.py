"""Every store that is shipped has a contract class; those that no other file has are here."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import tessarr.core.asynchronous.stores
import tessarr.stores
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.asynchronous import AsyncStore, SyncAdapter, to_async
from tessarr.stores.base import ANY, Any_, Store, Version
from tessarr.stores.local.zarr2 import DirectoryStore, NestedDirectoryStore, TempStore
from tessarr.stores.memory.store import MemoryStore
from tessarr.stores.virtual.n5 import N5FSStore
from tessarr.stores.wrappers.base import ForwardingStore
from tessarr.stores.wrappers.creating import CreatingStore
from tessarr.stores.wrappers.read_only import ReadOnlyStore
from tessarr.transactions.overlay import OverlayStore
from tessarr.types import Buffer, ByteRange
from tests.stores.contract import SEED, ConditionalContract, ReadContract, StoreContract, WriteContract

TESTS = Path(__file__).resolve().parents[1]
WITHOUT = {
    "DatabaseStore": "a base: RedisStore and MongoDBStore are run",
    "FetchingStore": "a base: RedisStore and MongoDBStore are run",
    "AsyncFetchingStore": "a base: ReferenceStore, RemoteZipStore and ZarrPythonStore are run",
    "NetworkStore": "a base: ObjectStore and FsspecStore are run",
    "GpuMemoryStore": "cannot be made: it says that there is no such store",
    "ConsolidatedMetadataStore": "its documents are in one key, and not those of the seed: tests/compat",
    "Transactional": "a base: LocalStore is run",
    "ContainedStore": "a LocalStore without links, for servers: tests/serve",
    "SourceStore": "its documents are made from a file, and not those of the seed: tests/tools/test_source_store.py",
    "ViewStore": "its documents and chunks are made from those of another store: tests/serve/views",
    "VirtualStore": "its chunks are made of the elements of arrays: tests/virtual",
    "PrecomputedStore": "read-only, and its documents are made from that of a volume: tests/stores/virtual",
    "FilesStore": "read-only, and its keys are chunks of scanned files: tests/tools/test_convert_files.py",
    "ContainerStore": "a base: N5Store is run",
    "RelocatedStore": "a base: ManifestStore and PartsStore are run there",
    "LocalSnapshot": "what a directory was at one moment, of keys that it has: tests/transactions/test_snapshots.py",
    "RecordedSnapshot": "the same of stores that keep nothing",
    "_Snapshot": "the same of LMDB, read in one of its transactions",
    "CoroutineStore": "made of stores of zarr-python's shape: tests/as_zarr, tests/compat",
}
"""Store classes without a contract class, and why."""


class TestForwardingStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return ForwardingStore(MemoryStore())


class TestOverlayStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return OverlayStore(MemoryStore(), lambda: None)

    def test_a_read_only_twin_refuses_every_write(self, seeded: Store) -> None:
        """A transaction has one store, which is neither copied nor pickled."""
        with pytest.raises(UnsupportedOperationError):
            seeded.with_read_only()


class TestCreatingStore(StoreContract, ConditionalContract):
    @pytest.fixture
    def store(self) -> Store:
        return CreatingStore(MemoryStore())


class TestReadOnlyStore(ReadContract):
    @pytest.fixture
    def seeded(self) -> Store:
        return ReadOnlyStore(MemoryStore(dict(SEED)))


class TestDirectoryStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return DirectoryStore(str(tmp_path))


class TestNestedDirectoryStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return NestedDirectoryStore(str(tmp_path))


class TestTempStore(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        return TempStore(dir=str(tmp_path))


class TestN5FSStore(WriteContract):
    @pytest.fixture
    def store(self) -> Store:
        return N5FSStore({})


class TestSyncAdapter(StoreContract):
    parts_are_of_one_value = False  # each part is a call of `get`

    @pytest.fixture
    def store(self) -> Store:
        return SyncAdapter(to_async(MemoryStore()))


class Awaited(AsyncStore):
    """A store that is written as coroutines."""

    def __init__(self) -> None:
        self.values_of = MemoryStore()

    async def get_async(self, key: str, byte_range: ByteRange | None = None) -> Buffer | None:
        return self.values_of.get(key, byte_range)

    async def set_async(self, key: str, value: Buffer, *, if_match: Version | None | Any_ = ANY) -> Version | None:
        self._check_writable(key)
        return self.values_of.set(key, value, if_match=if_match)

    async def delete_async(self, key: str) -> None:
        self._check_writable(key)
        self.values_of.delete(key)

    async def list_prefix_async(self, prefix: str) -> list[str]:
        return [*self.values_of.list_prefix(prefix)]


class TestAsyncStore(StoreContract):
    parts_are_of_one_value = False  # each part is a call of `get_async`

    @pytest.fixture
    def store(self) -> Awaited:
        return Awaited()


def shipped() -> set[str]:
    """The names of the store classes of the package.

    Those of `tessarr.zarr_python` are made of open stores of zarr-python, and compared with them in tests/zarr_python. Those of
    the facade are names by which stores of other classes are opened: tests/as_zarr.
    """
    modules = [module.name for module in pkgutil.walk_packages(tessarr.stores.__path__, "tessarr.stores.")]
    for name in (
        *modules,
        "tessarr.serve.contained",
        "tessarr.tools.files.files_store",
        "tessarr.tools.sources.store",
        "tessarr.transactions.overlay",
        "tessarr.transactions.recorded",
        "tessarr.virtual.store",
    ):
        importlib.import_module(name)

    def below(kind: type[Store]) -> Iterator[type[Store]]:
        for subclass in kind.__subclasses__():
            yield subclass
            yield from below(subclass)

    ours = [
        kind for kind in below(Store) if kind.__module__.startswith("tessarr.") and ".facade." not in kind.__module__
    ]
    return {kind.__name__ for kind in ours if not kind.__module__.startswith("tessarr.zarr_python.")}


def under_contract() -> set[str]:
    """The names that occur in classes of tests that inherit a contract."""
    found: set[str] = set()
    for file in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and any("Contract" in ast.unparse(base) for base in node.bases):
                found |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}
                found.add(node.name.removeprefix("Test"))
    return found


def test_every_store_that_is_shipped_is_run_by_the_contract() -> None:
    classes = shipped()
    assert len(classes) > 35
    assert classes - under_contract() == WITHOUT.keys()

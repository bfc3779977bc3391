"""Which objects a transaction keeps from its place while it is open, and who ends it."""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import TransactionError, UnsupportedOperationError
from tessarr.storage import CountingStore, LocalStore, MemoryStore, PrefixStore
from tessarr.stores.base import Store


@pytest.fixture(params=["local", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    store = LocalStore(tmp_path / "data.zarr") if request.param == "local" else MemoryStore()
    root = tessarr.create_group(store)
    root.create_array("a", data=np.arange(4), chunks=(2,))
    return store


def _below(place: Store) -> Any:
    return place.root / "a" if isinstance(place, LocalStore) else PrefixStore(place, "a")


@pytest.mark.parametrize("inner", [_below, CountingStore, lambda place: tessarr.open_array(place, path="a")])
def test_a_transaction_of_a_place_within_one_is_refused_when_it_is_entered(
    place: Store, inner: Callable[[Store], Any]
) -> None:
    for one, other in ((place, inner(place)), (inner(place), place)):
        with tessarr.transaction(one), pytest.raises(TransactionError, match="cannot be nested"):
            tessarr.transaction(other).__enter__()
    assert tessarr.open_array(place, path="a")[:].tolist() == [0, 1, 2, 3]


def test_a_transaction_of_what_a_transaction_holds_is_refused(place: Store) -> None:
    with (
        tessarr.transaction(place) as tx,
        pytest.raises((TransactionError, UnsupportedOperationError)),
        tessarr.transaction(tx.group),
    ):
        pass


def test_other_places_have_transactions_of_their_own(tmp_path: Path) -> None:
    with tessarr.transaction(tmp_path / "one"), tessarr.transaction(tmp_path / "other") as tx:
        tx.group.create_group("g")
    assert sorted(tessarr.open_group(tmp_path / "other", mode="r")) == ["g"]


def test_functions_that_write_documents_and_keys_are_refused_outside(place: Store) -> None:
    with tessarr.transaction(place) as tx:
        with pytest.raises(TransactionError, match="not of it"):
            tessarr.consolidate_metadata(place)
        with pytest.raises(TransactionError, match="not of it"):
            tessarr.copy_store(place, place, source_path="a", dest_path="c")
        tessarr.copy_store(place, place, source_path="a", dest_path="c", dry_run=True)
        tessarr.copy_store(place, MemoryStore(), source_path="a")
        tx.group.attrs["n"] = 1
        tessarr.consolidate_metadata(tx.group)
    found: Any = tessarr.open_group(place, mode="r", use_consolidated=True)
    assert dict(found.attrs) == {"n": 1}
    assert sorted(found) == ["a"]


def test_a_transaction_that_is_dropped_is_released_with_a_warning(place: Store) -> None:
    root = tessarr.open_group(place, mode="r+")
    tx = tessarr.transaction(place).__enter__()
    group: Any = tx.group
    group["a"][:] = 7
    del tx
    gc.collect()
    group["a"][:] = 8  # what it holds keeps it
    with pytest.raises(TransactionError, match="not of it"):
        root.attrs["n"] = 1
    del group
    with pytest.warns(ResourceWarning, match="was dropped before its end, and nothing was changed"):
        gc.collect()
    root.attrs["n"] = 1
    assert tessarr.open_array(place, path="a")[:].tolist() == [0, 1, 2, 3]
    if isinstance(place, LocalStore):
        assert sorted(os.listdir(place.root / "a/c")) == ["0", "1"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("how", ["with", "async with"])
def test_a_forked_child_that_leaves_the_block_ends_by_its_own_exception(tmp_path: Path, how: str) -> None:
    program = """
import asyncio, os, sys, tessarr
tessarr.create_array(sys.argv[1] + "/t", data=[1])

async def main():
    child = None
    try:
        HOW tessarr.transaction(sys.argv[1]) as tx:
            tx.group["t"][0] = 3
            child = os.fork()
            if not child:
                sys.exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    except BaseException as error:
        if child == 0:
            os._exit(error.code if isinstance(error, SystemExit) else 8)
        raise

asyncio.run(main())
assert tessarr.open_array(sys.argv[1] + "/t")[0] == 3
""".replace("HOW", how)
    subprocess.run([sys.executable, "-W", "error", "-c", program, str(tmp_path)], check=True)


def test_a_snapshot_is_an_asynchronous_context_manager(place: Store) -> None:
    async def main() -> list[int]:
        async with await tessarr.snapshot_async(place, path="a") as array:
            found: Any = array
            return list(found[:].tolist())

    assert asyncio.run(main()) == [0, 1, 2, 3]

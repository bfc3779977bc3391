"""What simulated clients do: every operation that changes a hierarchy, and the hierarchy that they find.

An operation is a generator function of a store and a number that no other client has. It yields between its *steps*: each step
is promised to happen as a whole, and others may come in between (a handle that was opened before another client's change, say).
What it returns is its result; errors are results too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from contextlib import suppress
from typing import Any

import numpy as np

import tessarr
from tessarr import model
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.stored.metadata_io import keyed_documents
from tessarr.core.stored.write_new import write_new_steps
from tessarr.errors import ContainsArrayError
from tessarr.tools import check as checks
from tessarr.tools.convert import convert
from tessarr.tools.migrate import migrate
from tessarr.tools.repair import repair
from tests.simulation.simulator import step_ended

Operation = Callable[[Any, int], Generator[None, None, Any]]

CHUNK = 4


def make(store: Any, zarr_format: Any = 3, *, consolidated: bool = False) -> None:
    """Store the hierarchy that clients find: a root with attributes, an array, and a group with another one (a shard in v3)."""
    root = tessarr.create_group(store, attributes={"title": "simulated"}, zarr_format=zarr_format)
    root.create_array("a", data=-1 - np.arange(6, dtype="i4"), chunks=(CHUNK,), fill_value=0)
    group = root.create_group("g")
    layout: dict[str, Any] = {"chunks": (2,), "shards": (8,)} if zarr_format == 3 else {"chunks": (8,)}
    group.create_array("b", data=-11 - np.arange(8, dtype="i4"), fill_value=0, **layout)
    if consolidated:
        tessarr.consolidate_metadata(store)


def _open(store: Any, path: str) -> Any:
    return tessarr.open_array(store, path=path, mode="r+")


def append(store: Any, number: int) -> Generator[None, None, Any]:
    """Append three rows, which begin in a chunk that is there."""
    array = _open(store, "a")
    yield
    return array.append(np.full(3, number, "i4"))


def append_many(store: Any, number: int) -> Generator[None, None, Any]:
    """Append rows over three chunks."""
    array = _open(store, "a")
    yield
    return array.append(np.full(7, number, "i4"))


def grow(store: Any, number: int) -> Generator[None, None, Any]:
    """Resize to more chunks."""
    array = _open(store, "a")
    yield
    array.resize((12 + number,))


def shrink(store: Any, number: int) -> Generator[None, None, Any]:
    """Resize to one chunk."""
    array = _open(store, "a")
    yield
    array.resize((3,))


def write_part(store: Any, number: int) -> Generator[None, None, Any]:
    """Write two elements of a chunk."""
    array = _open(store, "a")
    yield
    array[1:3] = number


def write_element(store: Any, number: int) -> Generator[None, None, Any]:
    """Write one element of the same chunk; which one depends on the client."""
    array = _open(store, "a")
    yield
    array[number % CHUNK] = number


def write_chunk(store: Any, number: int) -> Generator[None, None, Any]:
    """Write a chunk as a whole."""
    array = _open(store, "a")
    yield
    array[0:CHUNK] = number


def clear_chunk(store: Any, number: int) -> Generator[None, None, Any]:
    """Write the fill value over a chunk, which removes it."""
    array = _open(store, "a")
    yield
    array[0:CHUNK] = 0


def clear_part(store: Any, number: int) -> Generator[None, None, Any]:
    """Write the fill value over a part of a chunk."""
    array = _open(store, "a")
    yield
    array[0:3] = 0


def write_shard(store: Any, number: int) -> Generator[None, None, Any]:
    """Write one element of a shard; which one depends on the client."""
    array = _open(store, "g/b")
    yield
    array[number % 8] = number


def write_tail(store: Any, number: int) -> Generator[None, None, Any]:
    """Write all elements of the last chunk, which the end of the array cuts."""
    array = _open(store, "a")
    yield
    array[CHUNK:6] = number


def set_attribute(store: Any, number: int) -> Generator[None, None, Any]:
    """Set an attribute that no other client sets."""
    array = _open(store, "a")
    yield
    array.attrs[f"x{number}"] = number


def set_same_attribute(store: Any, number: int) -> Generator[None, None, Any]:
    """Set an attribute of the root that other clients set too."""
    group = tessarr.open_group(store, mode="r+")
    yield
    group.attrs["title"] = number


def create(store: Any, number: int) -> Generator[None, None, Any]:
    """Create an array that must not be there yet; its length is that of no other client's."""
    root = tessarr.open_group(store, mode="r+")
    yield
    array = root.create_array("n", shape=(number,), chunks=(CHUNK,), dtype="i4", fill_value=0)
    yield
    array[0:1] = number


def create_below(store: Any, number: int) -> Generator[None, None, Any]:
    """Create an array below groups that are not there."""
    zarr_format: Any = tessarr.open_group(store, mode="r").metadata.zarr_format
    yield
    layout: dict[str, Any] = {"shape": (2,), "chunks": (2,), "dtype": "i4", "zarr_format": zarr_format}
    tessarr.create_array(store, name=f"h/i/c{number}", fill_value=0, **layout)


def create_group(store: Any, number: int) -> Generator[None, None, Any]:
    """Create a group where others create an array."""
    root = tessarr.open_group(store, mode="r+")
    yield
    root.create_group("n", attributes={"by": number})


def require(store: Any, number: int) -> Generator[None, None, Any]:
    """Create a group unless it is there."""
    root = tessarr.open_group(store, mode="r+")
    yield
    root.require_group("q")


def overwrite(store: Any, number: int) -> Generator[None, None, Any]:
    """Replace an array by another one without chunks."""
    zarr_format: Any = tessarr.open_group(store, mode="r").metadata.zarr_format
    yield
    layout: dict[str, Any] = {"shape": (5,), "chunks": (CHUNK,), "dtype": "i4", "zarr_format": zarr_format}
    tessarr.create_array(store, name="a", fill_value=0, overwrite=True, **layout)


def delete(store: Any, number: int) -> Generator[None, None, Any]:
    """Delete an array."""
    root = tessarr.open_group(store, mode="r+")
    yield
    with suppress(KeyError):  # another client may have done it
        del root["a"]


def delete_group(store: Any, number: int) -> Generator[None, None, Any]:
    """Delete a group with what is in it."""
    root = tessarr.open_group(store, mode="r+")
    yield
    with suppress(KeyError):
        del root["g"]


def move(store: Any, number: int) -> Generator[None, None, Any]:
    """Move a group with what is in it; each client elsewhere."""
    root = tessarr.open_group(store, mode="r+")
    yield
    root.move("g", f"moved{number}")


def consolidate(store: Any, number: int) -> Generator[None, None, Any]:
    """Write consolidated metadata."""
    yield
    tessarr.consolidate_metadata(store)


def store_model(store: Any, number: int) -> Generator[None, None, Any]:
    """Store a hierarchy from its model."""
    zarr_format: Any = tessarr.open_group(store, mode="r").metadata.zarr_format
    inside: Any = model.GroupSpec(attributes={"of": number}, zarr_format=zarr_format)
    spec: Any = model.GroupSpec(attributes={"by": number}, members={f"k{number}": inside}, zarr_format=zarr_format)
    yield
    model.to_store(spec, store, "m")


def replace_model(store: Any, number: int) -> Generator[None, None, Any]:
    """Replace a hierarchy by one from a model."""
    zarr_format: Any = tessarr.open_group(store, mode="r").metadata.zarr_format
    spec: Any = model.GroupSpec(attributes={"by": number}, members={}, zarr_format=zarr_format)
    yield
    model.to_store(spec, store, "g", overwrite=True)


def migrate_all(store: Any, number: int) -> Generator[None, None, Any]:
    """Describe the hierarchy in the other format too."""
    yield
    migrate(store, to_format=3)


def repair_all(store: Any, number: int) -> Generator[None, None, Any]:
    """Check, and repair what can be repaired."""
    yield
    report = checks.check(store, data="stat", jobs=1, conventions=False)
    repair(report, store, dry_run=False)  # a step that cannot be done now, because an append is pending, says so


def rechunk(store: Any, number: int) -> Generator[None, None, Any]:
    """Write an array, which is one stored value, with other chunks to another path."""
    source = tessarr.open_array(store, path="g/b", mode="r")
    yield
    convert(source, store, path=f"r{number}", chunks=(2,), zarr_format="keep")


def read_chunk(store: Any, number: int) -> Generator[None, None, Any]:
    """Read a chunk."""
    array = tessarr.open_array(store, path="a", mode="r")
    yield
    return array[0:3].tolist()


def read_shard(store: Any, number: int) -> Generator[None, None, Any]:
    """Read a shard."""
    array = tessarr.open_array(store, path="g/b", mode="r")
    yield
    return array[0:8].tolist()


def append_to_shard(store: Any, number: int) -> Generator[None, None, Any]:
    """Append rows that begin a shard, and end within it."""
    array = _open(store, "g/b")
    yield
    return array.append(np.full(3, number, "i4"))


def create_other(store: Any, number: int) -> Generator[None, None, Any]:
    """Create an array of the other format than the hierarchy, where others create one of its own.

    The library refuses that where it finds the group, so its writer of documents is called.
    """
    zarr_format: Any = {3: 2, 2: 3}[tessarr.open_group(store, mode="r").metadata.zarr_format]
    yield
    layout: dict[str, Any] = {"shape": (number,), "chunks": (CHUNK,), "dtype": "i4", "zarr_format": zarr_format}
    metadata = tessarr.create_array({}, fill_value=0, **layout)._metadata
    documents = keyed_documents("n", metadata.documents())
    if run_steps(write_new_steps(store, "n", documents, replace=False)) is not None:
        raise ContainsArrayError("a node is there", path="/n")


def replace_root(store: Any, number: int) -> Generator[None, None, Any]:
    """Replace the root, and all that is in it, by another group."""
    zarr_format: Any = tessarr.open_group(store, mode="r").metadata.zarr_format
    yield
    tessarr.create_group(store, attributes={"by": number}, zarr_format=zarr_format, overwrite=True)


def transact(store: Any, number: int) -> Generator[None, None, Any]:
    """Change parts of two arrays and an attribute in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        root: Any = tx.group
        root["a"][1:3] = number
        root["g/b"][0:2] = number
        root.attrs[f"t{number}"] = number


def transact_swap(store: Any, number: int) -> Generator[None, None, Any]:
    """Change parts of two arrays and an attribute in a transaction that exchanges the root."""
    yield
    with tessarr.transaction(store, mode="swap") as tx:
        root: Any = tx.group
        root["a"][1:3] = number
        root["g/b"][0:2] = number
        root.attrs[f"t{number}"] = number


def transact_append(store: Any, number: int) -> Generator[None, None, Any]:
    """Append to two arrays in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        shapes = [tx.group[path].append(np.full(3, number, "i4")) for path in ("a", "g/b")]
    return shapes


def transact_nodes(store: Any, number: int) -> Generator[None, None, Any]:
    """Delete a node and create another one in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        del tx.group["a"]
        tx.group.create_array("n", data=np.full(number, number, "i4"), chunks=(CHUNK,), fill_value=0)


def transact_merge(store: Any, number: int) -> Generator[None, None, Any]:
    """Set attributes of two nodes, and create a third one, in a transaction that merges documents."""
    yield
    with tessarr.transaction(store, on_conflict="merge") as tx:
        tx.group.attrs[f"t{number}"] = number
        tx.group["a"].attrs[f"t{number}"] = number
        tx.group.create_group(f"t{number}")


def transact_read(store: Any, number: int) -> Generator[None, None, Any]:
    """Read two arrays in a transaction, which changes nothing else than an attribute of its own."""
    yield
    with tessarr.transaction(store) as tx:
        root: Any = tx.group
        found = [root["a"][0:3].tolist(), root["g/b"][0:2].tolist()]
        root.create_group(f"read{number}")
    return found


def publish(store: Any, number: int) -> Generator[None, None, Any]:
    """Append to two arrays, and set attributes of two nodes, in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        root: Any = tx.group
        shapes = [root[path].append(np.full(3, number, "i4")) for path in ("a", "g/b")]
        root.attrs[f"p{number}"] = root["a"].attrs[f"p{number}"] = number
    return shapes


def publish_merge(store: Any, number: int) -> Generator[None, None, Any]:
    """Set attributes of two nodes, and append to one, in a transaction that merges documents."""
    yield
    with tessarr.transaction(store, on_conflict="merge") as tx:
        root: Any = tx.group
        root.attrs[f"p{number}"] = root["a"].attrs[f"p{number}"] = number
        return root["g/b"].append(np.full(3, number, "i4"))


def publish_sum(store: Any, number: int) -> Generator[None, None, Any]:
    """Set an attribute to what was read from two arrays, in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        root: Any = tx.group
        root["g"].attrs["sum"] = found = int(root["a"][0:3].sum() + root["g/b"][0:2].sum())
    return found


def publish_nodes(store: Any, number: int) -> Generator[None, None, Any]:
    """Create an array with values, and a group, and append to another array, in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        tx.group.create_array("n", data=np.full(number, number, "i4"), chunks=(CHUNK,), fill_value=0)
        tx.group.create_group(f"g/p{number}", attributes={"by": number})
        return tx.group["g/b"].append(np.full(3, number, "i4"))


def tx_move(store: Any, number: int) -> Generator[None, None, Any]:
    """Move an array, and set an attribute of another node, in a transaction; each client elsewhere."""
    yield
    with tessarr.transaction(store) as tx:
        tx.group.move("a", f"x{number}")
        tx.group["g"].attrs[f"x{number}"] = number


def tx_delete_group(store: Any, number: int) -> Generator[None, None, Any]:
    """Delete a group with what is in it, and set an attribute of the root, in a transaction."""
    yield
    with tessarr.transaction(store) as tx:
        with suppress(KeyError):  # another client may have done it
            del tx.group["g"]
        tx.group.attrs[f"d{number}"] = number


def read_snapshot(store: Any, number: int) -> Generator[None, None, Any]:
    """Read two arrays, as far as they are there, in a snapshot."""
    yield
    with tessarr.snapshot(store) as found:
        root: Any = found
        return [root[path][...].tolist() if path in root else None for path in ("a", "g/b")]


VOID = "void"


def void(paths: Collection[str]) -> Operation:
    """What a transaction comes to that failed, and left its rows behind in `paths`."""

    def voiding(store: Any, number: int) -> Generator[None, None, Any]:
        yield
        for path in paths:
            _open(store, path).append(np.zeros(3, "i4"))
        return VOID

    return voiding


def whole(operation: Operation, number: int) -> Callable[[Any], Any]:
    """The program of a client that does one operation."""

    def program(store: Any) -> Any:
        steps = operation(store, number)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                return end.value
            finally:
                step_ended(store)

    return program

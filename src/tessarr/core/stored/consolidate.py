"""Write the consolidated metadata of a group."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from functools import partial

from tessarr.common import strict_json
from tessarr.common.warn import report
from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import run_steps
from tessarr.core.stored.metadata_io import change_steps, put_document_steps, require_document
from tessarr.core.stored.read_nodes import NodeMetadata, require_node_steps
from tessarr.core.stored.walk import Entry, read_entries_steps, walk_below_steps
from tessarr.dtypes.parse import from_v3
from tessarr.dtypes.unstable import warn_of_unstable
from tessarr.errors import DataTypeValidationError, NodeNotFoundError, StaleConsolidatedError, StoreError
from tessarr.metadata import consolidated, formats, serialize
from tessarr.metadata.consolidated import V2_KEY
from tessarr.metadata.group import GroupMetadata
from tessarr.settings import config as settings
from tessarr.stores.base import Store
from tessarr.stores.path import join, prefix_of
from tessarr.types import JSON, ZarrFormat


def consolidate(store: Store, path: str, zarr_format: int | None = None, metadata_key: str = V2_KEY) -> None:
    """Write the stored documents of all nodes below the group at `path` into one document.

    Raises `GroupNotFoundError` when there is no group, `UnsupportedOperationError` when the store cannot list.
    """
    run_steps(consolidate_steps(store, path, zarr_format, metadata_key))


def consolidate_again(store: Store, keys: Iterable[str]) -> None:
    """Consolidate again where a transaction has just stored the first consolidated metadata, at `keys` (full).

    Who has created a node while these were made has not found them. Raises `StaleConsolidatedError`.
    """
    for key in keys:
        path, _, name = key.rpartition("/")
        try:
            with suppress(NodeNotFoundError):  # removed since
                consolidate(store, path, 2 if name == V2_KEY else 3, V2_KEY)
        except StoreError as error:
            raise StaleConsolidatedError(
                "the transaction is committed, but consolidated metadata may lack what others have created meanwhile",
                store=store.url,
                path=f"/{path}",
                got=str(error),
                hint="Do not repeat it: consolidate_metadata or `tessarr repair` writes the consolidated metadata again",
            ) from error


async def consolidate_steps(store: Store, path: str, zarr_format: int | None, metadata_key: str) -> None:
    """Write consolidated metadata of the group at `path`, as `consolidate` does.

    The documents are read again after they were written, until nothing has changed: a writer that looked for consolidated
    metadata before there were any has not updated them, and one that looks later does.
    """
    open_transactions.refuse_outside(store, path)
    group = await require_node_steps(store, path, zarr_format, GroupMetadata)  # type: ignore[arg-type]  # no such node
    number = group.zarr_format
    written = None
    while True:
        below = await _read_below_steps(store, path, number)
        text = strict_json.dumps(below, indent=None, allow_nan=True)  # NaN, in attributes, equals nothing
        if text == written:
            return
        if written is None:
            for relative, documents in below.items():
                report(formats.diagnose_corrections(number, documents), join(store.url, path, relative))
            if number == 3 and settings.get("zarr_python.warnings"):
                _warn_of_unstable(below.values())
        written = text
        if number == 3:
            block = consolidated.dump_v3(below)
            await change_steps(
                store, path, formats.KEYS[3].array, partial(_with_block, store, group, path, block), False
            )
        else:
            document = serialize.dumps({V2_KEY: consolidated.dump_v2(below)})[V2_KEY]
            await put_document_steps(store, prefix_of(path) + metadata_key, document, overwrite=True)


async def _read_below_steps(store: Store, path: str, zarr_format: ZarrFormat) -> dict[str, dict[str, JSON]]:
    """Read the documents of all nodes below: path relative to the group → documents; in v2 those of the group too."""
    keys, start = formats.KEYS[zarr_format], len(prefix_of(path))
    entries = await walk_below_steps(store, Entry(path, {}), zarr_format, keys.all)
    below = {entry.path[start:]: entry.documents(zarr_format) for entry in entries}
    if zarr_format == 3:
        return below
    (own,) = await read_entries_steps(store, [path], (str(keys.group), str(keys.attributes)))
    return {"": own.documents(zarr_format), **below}


def _with_block(
    store: Store, group: NodeMetadata, path: str, block: JSON, document: dict[str, object]
) -> dict[str, object]:
    return {**require_document(store, path, document, group), consolidated.FIELD: block}


def _warn_of_unstable(documents: Iterable[dict[str, JSON]]) -> None:
    for node in documents:
        document = node[formats.KEYS[3].array]
        if isinstance(document, dict) and "data_type" in document:
            with suppress(DataTypeValidationError):  # documents are consolidated as they are
                warn_of_unstable(from_v3(document["data_type"]))

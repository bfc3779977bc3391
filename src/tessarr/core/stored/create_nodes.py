"""Create several nodes from their metadata, and take them back; notice what becomes of nodes while they are read; describe in
Zarr v3 too what is created while its group is migrated.

A migration reads the documents of Zarr v2 again after it has written those of v3: either it finds the node that was created
meanwhile, or who has created the node finds the new document of its group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from tessarr.common import strict_json
from tessarr.core import open_transactions
from tessarr.core.asynchronous.sans_io import run_steps, store_call
from tessarr.core.stored import metadata_io, read_nodes
from tessarr.core.stored.consolidated import follow_change_steps, follow_changes
from tessarr.core.stored.parse_cache import parse_document
from tessarr.core.stored.read_nodes import NodeMetadata
from tessarr.core.stored.walk import Entry, read_entries, read_entries_steps
from tessarr.core.stored.write_new import is_same_node, layout_of, refuse_mixing
from tessarr.errors import ConflictError
from tessarr.metadata import formats
from tessarr.metadata.array import ArrayMetadata
from tessarr.metadata.group import GroupMetadata
from tessarr.metadata.public import model_of
from tessarr.settings import config
from tessarr.stores.base import Store, Version
from tessarr.stores.path import ancestors, join, prefix_of
from tessarr.stores.protocols import Remote
from tessarr.types import ZarrFormat


def create_nodes(
    store: Store, here: str, nodes: Mapping[str, object], *, overwrite: bool = False
) -> Iterator[tuple[str, str, NodeMetadata]]:
    """Create nodes below `here`, and missing groups above these nodes, parents before children.

    `nodes`: path below `here` → metadata or a document. Yields the path below `here`, the path in the store, and the
    metadata. Raises `ContainsArrayError` or `ContainsGroupError` when a named node exists and not `overwrite`.
    """
    wanted = {path.strip("/"): _metadata(node) for path, node in nodes.items()}
    wanted = {**_missing_above(store, here, wanted), **wanted}
    for path in sorted(wanted, key=lambda p: (p.count("/") if p else -1, p)):
        whole = prefix_of(here) + path if path else here
        yield path, whole, _created(store, whole, wanted[path], overwrite)


def check_free(store: Store, path: str, zarr_format: ZarrFormat) -> None:
    """Raise the errors of `metadata_io.create_node`, with `newer`, about the place of a new node."""
    metadata_io.check_path(path, zarr_format)
    store._check_writable(path)
    open_transactions.refuse_outside(store, path)
    entries = read_entries(store, [*ancestors(path), path])
    if entries[-1].kind is not None:
        raise metadata_io.occupied(store, path, entries[-1].kind)
    refuse_mixing(store, path, zarr_format, entries, newer=True)


def _missing_above(store: Store, here: str, wanted: Mapping[str, NodeMetadata]) -> dict[str, NodeMetadata]:
    """Make metadata of groups for the paths above `wanted` where no node is stored or wanted."""
    found: dict[str, NodeMetadata] = {}
    for path, node in wanted.items():
        for above in ancestors(path):
            place = join(here, above)
            if above not in wanted and above not in found and read_nodes.read_node(store, place) is None:
                found[above] = GroupMetadata(zarr_format=node.zarr_format)
    return found


def _metadata(given: object) -> NodeMetadata:
    node = model_of(given)
    if isinstance(node, ArrayMetadata | GroupMetadata):
        return node
    document = strict_json.plain(node.to_dict() if hasattr(node, "to_dict") else dict(node))
    return parse_document(document, group="shape" not in document)


def _created(store: Store, path: str, metadata: NodeMetadata, overwrite: bool) -> NodeMetadata:
    present = read_nodes.read_node(store, path)
    if (
        isinstance(present, GroupMetadata)
        and isinstance(metadata, GroupMetadata)
        and present.attributes == metadata.attributes
    ):
        return present
    metadata_io.create_node(store, path, metadata, overwrite=overwrite)
    return metadata


def describes(entry: Entry, metadata: NodeMetadata) -> bool:
    """Whether what is stored is the node that `metadata` describes, whose attributes may have been changed since, and which may
    have been migrated."""
    documents = metadata_io.keyed_documents(entry.path, metadata.documents())
    key, data = list(documents.items())[-1]
    stored = entry.values.get(key.removeprefix(entry.prefix))
    if stored is None or not (entry.formats == (metadata.zarr_format,) or _is_migrated(entry, metadata)):
        return False
    if not isinstance(metadata, ArrayMetadata):
        return entry.kind == "group"
    return entry.kind == "array" and layout_of(stored, "shape") == layout_of(data, "shape")


def _is_migrated(entry: Entry, metadata: NodeMetadata) -> bool:
    """Whether a node of Zarr v2 is described in v3 too, as the same node."""
    if metadata.zarr_format != 2 or entry.formats != (3, 2):
        return False
    from tessarr.model.conversion.upgrade import is_upgrade

    return is_upgrade(entry.values[formats.KEYS[3].array], entry.values)


class Watched:
    """The documents of nodes that are read, by which `check` notices what became of the nodes meanwhile.

    A path without documents when this is made is not watched. Where a store is not remote the versions of the documents are
    compared too, so that a node is noticed that replaced one with the same documents.
    """

    def __init__(self, store: Store, paths: Sequence[str]) -> None:
        self._store = store
        self._before = [(entry, self._versions(entry)) for entry in read_entries(store, paths, _DOCUMENTS)]

    @classmethod
    def of(cls, store: Store, opened: Mapping[str, NodeMetadata], *, consolidated: bool = False) -> Watched:
        """Watch nodes that were opened before, by path. `consolidated`: members may be known by consolidated metadata alone.

        Raises `ConflictError` where one of them was removed, replaced or made shorter since.
        """
        watched = cls(store, list(opened))
        for (entry, _), metadata in zip(watched._before, opened.values(), strict=True):
            if not entry.formats and consolidated:
                continue
            if not entry.formats or not _is_still(entry, metadata):
                raise watched._changed(entry.path)
        return watched

    def _versions(self, entry: Entry) -> list[Version | None]:
        if isinstance(self._store, Remote):
            return []
        return [self._store.version(entry.prefix + name) for name in entry.values]

    def check(self, *, grown: bool) -> None:
        """Raise `ConflictError` where a node was removed, moved, replaced or resized.

        Changed attributes do no harm, nor does an array that has `grown`, where that is allowed.
        """
        now = read_entries(self._store, [entry.path for entry, _ in self._before], _DOCUMENTS)
        for (before, versions), after in zip(self._before, now, strict=True):
            for name, data in before.values.items():
                stored = after.values.get(name)
                equal = stored is not None and bytes(stored) == bytes(data)
                if stored is None or not (equal or _is_read_alike(before, after, name, grown=grown)):
                    raise self._changed(before.path)
                if equal and self._versions(before) != versions:
                    raise self._changed(before.path)

    def _changed(self, path: str) -> ConflictError:
        what = "the source was resized, replaced, moved or removed while it was read"
        return ConflictError(
            what, store=self._store.url, path=f"/{path}", hint="What was written is not complete: repeat it"
        )


_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", "meta")


def _is_read_alike(before: Entry, after: Entry, name: str, *, grown: bool) -> bool:
    """Whether elements that were read by a document of a node are read by the changed one, too."""
    if before.kind != "array" or after.kind != "array":
        return before.kind == after.kind
    old, new = before.json(name).get("shape", ()), after.json(name).get("shape", ())
    shape = old == new or (grown and len(old) == len(new) and all(a <= b for a, b in zip(old, new, strict=True)))
    return shape and layout_of(before.values[name]) == layout_of(after.values[name])


def _is_still(entry: Entry, opened: NodeMetadata) -> bool:
    """Whether stored documents describe the node that was opened, which may have grown since."""
    if not isinstance(opened, ArrayMetadata) or opened.zarr_format not in entry.formats:
        return isinstance(opened, ArrayMetadata) == (entry.kind == "array")
    number = opened.zarr_format
    now = formats.parse_node(number, entry.documents(number)).node
    before, after = (_as_stored(entry, node) for node in (opened, now))
    return _is_read_alike(before, after, formats.KEYS[number].array, grown=True)


def _as_stored(entry: Entry, node: NodeMetadata) -> Entry:
    """Return the entry with the documents of `node` as this package writes them, so that two spellings are equal."""
    documents = metadata_io.keyed_documents(entry.path, node.documents())
    return Entry(entry.path, {key.removeprefix(entry.prefix): data for key, data in documents.items()})


def take_back(store: Store, made: Mapping[str, NodeMetadata]) -> None:
    """Remove nodes that were created just now, of which other clients may have changed or replaced some.

    An array goes with its chunks. A group that another client has changed, or in which it has made something, stays.
    """
    for path in sorted(made, key=lambda path: (-path.count("/"), path == "")):
        metadata = made[path]
        documents = metadata_io.keyed_documents(path, metadata.documents())
        if isinstance(metadata, ArrayMetadata):
            own, data = list(documents.items())[-1]
            stored = store.get(own)
            if stored is not None and is_same_node(data, stored):
                with suppress(ConflictError):  # another client removes it already
                    metadata_io.delete_node(store, path)
        elif all(key in documents for key in store.list_prefix(prefix_of(path))):
            for key, data in reversed(documents.items()):
                metadata_io.swap_document(store, key, data, None)
            follow_changes(store, [path])


def describe_made(store: Store, made: Mapping[str, NodeMetadata]) -> None:
    """Describe in Zarr v3 too the nodes of v2 that were `made`, by path, where the group above is described in it.

    Who has made them did not see that it was migrated meanwhile.
    """
    for path in sorted(path for path, metadata in made.items() if path and metadata.zarr_format == 2):
        run_steps(_describe_made_steps(store, path))


async def _describe_made_steps(store: Store, path: str) -> None:
    above, own = await read_entries_steps(store, [path.rpartition("/")[0], path])
    if 3 in above.formats and own.formats == (2,):
        await describe_new_steps(store, path, above.path)


async def create_node_steps(store: Store, path: str, metadata: NodeMetadata, *, overwrite: bool) -> None:
    """Write a new node, and missing groups above the node, as `metadata_io.create_node_steps` does; one of v2 that replaces
    another node is described in Zarr v3 too, if the group above has been migrated meanwhile."""
    await metadata_io.create_node_steps(store, path, metadata, overwrite=overwrite)
    if overwrite and path and metadata.zarr_format == 2 and not config.get("zarr_python.both_formats"):
        await _describe_made_steps(store, path)


async def describe_new_steps(store: Store, path: str, group: str) -> None:
    """Describe in Zarr v3 the node of v2 at `path`, and the groups between it and the one at `group`, as far as they are not.

    Raises `MetadataValidationError` for an array that v3 cannot express.
    """
    places = [place for place in (*ancestors(path), path) if place != group and place.startswith(prefix_of(group))]
    for entry in await read_entries_steps(store, places):
        if entry.formats == (2,):
            await _describe_steps(store, entry)
    await follow_change_steps(store, path, below=places)


async def _describe_steps(store: Store, entry: Entry) -> None:
    from tessarr.model.conversion import upgrade  # only creation in a hierarchy that is being migrated needs it

    keys = formats.KEYS[2]
    node = formats.parse_node(2, entry.documents(2)).node
    converted = upgrade.array_to_v3(node) if isinstance(node, ArrayMetadata) else upgrade.group_to_v3(node)
    old = entry.prefix + (keys.array if isinstance(node, ArrayMetadata) else str(keys.group))
    for key, data in metadata_io.keyed_documents(entry.path, converted.metadata.documents()).items():
        created = await metadata_io.put_document_steps(store, key, data, overwrite=False)
        if created and not await store_call(store, "exists", old):
            await withdraw_steps(store, key, data)  # another writer has deleted the node meanwhile


async def withdraw_steps(store: Store, key: str, data: bytes) -> None:
    """Remove the document at `key`, which was created as `data` and describes a node that had been deleted.

    Another writer may have changed the attributes or the shape of the array meanwhile; a document of another node stays.
    """
    await metadata_io.remove_document_steps(store, key, lambda stored: is_same_node(data, stored))

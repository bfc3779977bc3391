"""Documents of nodes among the values of a transaction: which keys they are, and which arrays they resize or remove."""

from __future__ import annotations

from collections.abc import Mapping

from tessarr.common.json_merge import member_of
from tessarr.metadata.consolidated import FIELD, V2_KEY
from tessarr.metadata.formats import DOCUMENT_NAMES, KEYS, NODE_DOCUMENTS
from tessarr.types import Buffer

_NODES = frozenset().union(*NODE_DOCUMENTS.values())


def is_document(key: str) -> bool:
    """Whether a key is that of a metadata document.

    >>> is_document("a/zarr.json"), is_document("a/c/0")
    (True, False)
    """
    return key.rpartition("/")[2] in DOCUMENT_NAMES


def makes_node(key: str) -> bool:
    """Whether a node exists because of the document at `key`, and is of its format.

    >>> makes_node("a/zarr.json"), makes_node("a/.zgroup"), makes_node("a/.zattrs")
    (True, True, False)
    """
    return key.rpartition("/")[2] in _NODES


def resized(changes: Mapping[str, bytes | None], before: Mapping[str, bytes]) -> set[str]:
    """Return the paths of arrays whose document in `changes` has another shape than the one `before`.

    >>> resized({"a/zarr.json": b'{"shape":[3]}', "b/zarr.json": b'{"shape":[1]}', "a/c/0": b"x"},
    ...         {"a/zarr.json": b'{"shape":[2]}', "b/zarr.json": b'{"shape":[1]}'})
    {'a'}
    """
    return {
        key.rpartition("/")[0]
        for key, new in changes.items()
        if new is not None
        and is_document(key)
        and (old := before.get(key)) is not None
        and member_of(old, "shape") != member_of(new, "shape")
    }


def removed(changes: Mapping[str, bytes | None]) -> set[str]:
    """Return the paths of nodes whose document `changes` remove, arrays in any case.

    >>> removed({"a/zarr.json": None, "a/c/0": None, "b/.zattrs": None})
    {'a'}
    """
    arrays = {keys.array for keys in KEYS.values()}
    places = (key.rpartition("/") for key, new in changes.items() if new is None)
    return {path for path, _, name in places if name in arrays}


def is_consolidated(key: str, document: Buffer | None) -> bool:
    """Whether the document at `key` has consolidated metadata.

    >>> is_consolidated("g/zarr.json", b'{"consolidated_metadata":{}}'), is_consolidated("g/.zmetadata", None)
    (True, False)
    """
    name = key.rpartition("/")[2]
    return document is not None and (name == V2_KEY or (name == "zarr.json" and FIELD.encode() in bytes(document)))

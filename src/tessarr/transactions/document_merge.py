"""Documents of nodes among the values of a transaction: their keys and copies, and which arrays they resize or remove."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from tessarr.common.json_merge import member_of
from tessarr.metadata.consolidated import FIELD, V2_KEY
from tessarr.metadata.formats import DOCUMENT_NAMES, KEYS, NODE_DOCUMENTS
from tessarr.types import Buffer

_NODES = frozenset(name for names in NODE_DOCUMENTS.values() for name in names if name is not None)


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


def other_descriptions(keys: Iterable[str]) -> set[str]:
    """Return the keys at which nodes with documents among `keys` could be described, and are not.

    >>> sorted(other_descriptions(["a/.zarray", "a/0"]))
    ['a/.zgroup', 'a/meta', 'a/zarr.json']
    """
    there = {*keys}
    prefixes = {key.removesuffix(key.rpartition("/")[2]) for key in there if makes_node(key)}
    return {prefix + name for prefix in prefixes for name in _NODES} - there


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


def newly_consolidated(changes: Mapping[str, object], before: Mapping[str, bytes]) -> list[str]:
    """Return the keys at which documents in `changes` have consolidated metadata, and those `before` had none.

    >>> newly_consolidated({"zarr.json": b'{"consolidated_metadata":{}}', "c/0": b"x"}, {"zarr.json": b"{}"})
    ['zarr.json']
    """
    documents = {key: new for key, new in changes.items() if isinstance(new, bytes)}
    return [
        key for key, new in documents.items() if is_consolidated(key, new) and not is_consolidated(key, before.get(key))
    ]


def with_copies(key: str, document: bytes, nodes: Mapping[str, bytes]) -> bytes:
    """Return the document at `key` with `nodes` (key → document) in its consolidated metadata, where it has any.

    >>> with_copies("g/.zmetadata", b'{"metadata":{"a/.zattrs":{}}}', {"g/a/.zattrs": b'{"n":1}', "h/.zattrs": b"{}"})
    b'{"metadata": {"a/.zattrs": {"n": 1}}}'
    """
    prefix, name = key[: key.rfind("/") + 1], key.rpartition("/")[2]
    inside = {
        one.removeprefix(prefix): content for one, content in nodes.items() if one.startswith(prefix) and one != key
    }
    if not inside or not is_consolidated(key, document):
        return document
    found = json.loads(document)
    held = found if name == V2_KEY else found[FIELD]
    entries = held.get("metadata") if isinstance(held, dict) else None
    if not isinstance(entries, dict):
        return document
    for place, content in inside.items():
        entry = place.removesuffix("/zarr.json")  # no copy in `.zmetadata` is called so
        if entry in entries:
            copied = json.loads(content)
            if not entry.endswith(".zattrs"):
                copied.pop(FIELD, None)
            entries[entry] = copied
    return json.dumps(found, ensure_ascii=False, allow_nan=True).encode()

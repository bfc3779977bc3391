"""Merge two changes of one JSON object, member by member."""

from __future__ import annotations

import json

from tessarr.types import Buffer

_MISSING = object()


def merged(base: Buffer | None, own: bytes | None, other: Buffer | None, *, keep_other: bool = False) -> bytes | None:
    """Merge two changes of the document `base`, member by member; ``None``: both changed one member.

    With `keep_other` such a member is that of `other`.

    >>> merged(b'{"a":1,"b":{"c":1}}', b'{"a":2,"b":{"c":1}}', b'{"a":1,"b":{"c":1,"d":3}}')
    b'{"a": 2, "b": {"c": 1, "d": 3}}'
    >>> merged(b'{"a":1}', b'{"a":2}', b'{"a":3}') is None
    True
    >>> merged(b'{"a":1,"b":1}', b'{"a":2,"b":2}', b'{"a":3,"b":1}', keep_other=True)
    b'{"a": 3, "b": 2}'
    """
    if base is None or own is None or other is None:
        return None
    try:
        documents = [json.loads(bytes(document)) for document in (base, own, other)]
        found = _merged(*documents, keep_other=keep_other)
    except (ValueError, _BothChangedError):
        return None
    return json.dumps(found, ensure_ascii=False, allow_nan=True).encode()


def lacks(base: bytes, own: bytes, other: Buffer) -> bool:
    """Whether `other` has the value of `base` for a member that `own` has changed.

    >>> lacks(b'{"a":1,"b":{"c":1}}', b'{"a":1,"b":{"c":2}}', b'{"a":3,"b":{"c":1}}')
    True
    >>> lacks(b'{"a":1,"b":1}', b'{"a":1,"b":2}', b'{"a":1,"b":3}')
    False
    """
    try:
        return _lacks(*(json.loads(bytes(document)) for document in (base, own, other)))
    except ValueError:
        return True


def _lacks(base: object, own: object, other: object) -> bool:
    if base == own:
        return False
    if not (isinstance(base, dict) and isinstance(own, dict) and isinstance(other, dict)):
        return base == other
    names = {*base, *own}
    return any(_lacks(*(document.get(name, _MISSING) for document in (base, own, other))) for name in names)


def both_changed(base: Buffer | None, own: bytes | None, other: Buffer | None, member: str) -> bool:
    """Whether two changes of an object each gave a member another value, be it the same one.

    >>> both_changed(b'{"shape":[1]}', b'{"shape":[2]}', b'{"shape":[2]}', "shape")
    True
    """
    if base is None or own is None or other is None:
        return False
    before, mine, theirs = (member_of(document, member) for document in (base, own, other))
    return before not in (mine, theirs)


def member_of(document: Buffer, member: str) -> object:
    """Return a member of a JSON object; ``None`` where there is none."""
    found = json.loads(bytes(document))
    return found.get(member) if isinstance(found, dict) else None


class _BothChangedError(Exception):
    """Both documents have another value of one member than the base."""


def _merged(base: object, own: object, other: object, *, keep_other: bool) -> object:
    if own == other or base == other:
        return own
    if base == own:
        return other
    if not (isinstance(base, dict) and isinstance(own, dict) and isinstance(other, dict)):
        if keep_other:
            return other
        raise _BothChangedError
    found: dict[object, object] = {}
    for name in dict.fromkeys([*other, *own]):
        values = [document.get(name, _MISSING) for document in (base, own, other)]
        value = _merged(*values, keep_other=keep_other)
        if value is not _MISSING:
            found[name] = value
    return found

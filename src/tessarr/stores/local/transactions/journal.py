"""The journal of a committed transaction: what `tessarr.stores.local.transactions.commit` has to do, as a file. Pure; no I/O.

A journal is text: a header, one line per step in order, and a line with the digest of all bytes before it.

>>> text = Journal("0123456789ab", "2f", [Step("a/c/0", None, "30:1:5")]).dump()
>>> print(text.decode())
{"tessarr_journal":1,"id":"0123456789ab","directory":"2f"}
{"key":"a/c/0","old":null,"new":"30:1:5"}
{"sha256":"..."}
>>> parse(text).steps
[Step(key='a/c/0', old=None, new='30:1:5', changed=None)]

`RootJournal` is another form, of the replacement of everything in a root, and `SwapJournal` a third one, of a root that was
exchanged with a second tree.

In the directories of nodes that a journal changes there are *pointers*, files of the same name, which say how many
directories above the journal is. A *mark* in a lock file has the form of a pointer.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from typing import NamedTuple, TypeAlias

from tessarr.errors import JournalError, TessarrError
from tessarr.stores.local.lock import TEMPORARY_SUFFIX, is_hidden
from tessarr.stores.path import check_key

MAX_NBYTES = 1 << 30
"""The most bytes of a journal that are read."""
MAX_ABOVE = 64
"""The most directories between a pointer and its journal."""
DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs", ".zmetadata", "meta", "attrs")
"""Names whose presence makes a directory that of a node."""
_DOCUMENTS = frozenset(DOCUMENTS)
_IS_ID = re.compile(r"[0-9a-f]{12}").fullmatch
_FORM = "tessarr_journal"


class Step(NamedTuple):
    """One change: the file of `key` is replaced by its staged file, or removed."""

    key: str
    old: str | None
    """The version (`version_in_journal`) that the file had when the transaction committed; ``None``: there was no file."""
    new: str | None
    """The version of the staged file; ``None``: the file is removed."""
    changed: int | None = None
    """Where a snapshot lives: when the file was changed last (``st_ctime_ns``), before links to it were made."""


def version_in_journal(version: str | None) -> str | None:
    """Return a version of a file without the device, whose number may be another one when the system was started again.

    >>> version_in_journal("fd00:2f:1a:5")
    '2f:1a:5'
    """
    return None if version is None else version.partition(":")[2]


def is_document(key: str) -> bool:
    """Whether the value at `key` makes a node."""
    return key.rpartition("/")[2] in _DOCUMENTS


@dataclass(frozen=True, slots=True)
class Journal:
    """The steps of a committed transaction."""

    id: str
    """Twelve hexadecimal digits, in the names of the staged files."""
    directory: str
    """The inode of the directory that the journal is in, in hexadecimal: another one means that the directory is a copy."""
    steps: Sequence[Step]
    lines: bytes | None = field(default=None, compare=False)
    """`steps` as lines, where these are made already."""

    def dump(self) -> bytes:
        """Return the content of the file."""
        lines = _lines(self.steps) if self.lines is None else self.lines
        body = _dumps({_FORM: 1, "id": self.id, "directory": self.directory}) + lines
        return body + _dumps({"sha256": _digest(body)})


@dataclass(frozen=True, slots=True)
class RootJournal:
    """All entries of a store's root are replaced by staged ones."""

    id: str
    """Twelve hexadecimal digits, in the names of the hidden directories of the entries."""
    directory: str
    """See `Journal`."""
    old: Sequence[str]
    """The names of the entries that were there."""
    new: Sequence[str]
    """The names of the staged entries."""

    def dump(self) -> bytes:
        """Return the content of the file."""
        body = _dumps({_FORM: 2, "id": self.id, "directory": self.directory, "old": self.old, "new": self.new})
        return body + _dumps({"sha256": _digest(body)})


@dataclass(frozen=True, slots=True)
class SwapJournal:
    """The root was exchanged with a second tree, and the old tree is not removed yet."""

    id: str
    """Twelve hexadecimal digits, in the name of the old tree."""
    directory: str
    """See `Journal`: the inode of the new root."""
    name: str
    """The name of the old tree, which is beside the root."""
    old_directory: str
    """The inode of the old tree."""
    steps: Sequence[Step]
    """What is in both trees: a key, its version in the old tree (``None``: no file), and in the new one. A key of the old tree
    that has another version is a late write."""
    over: Sequence[str]
    """The keys that the transaction changed and had not read: late writes of them were before it."""

    def dump(self) -> bytes:
        """Return the content of the file."""
        header = {_FORM: 3, "id": self.id, "directory": self.directory, "name": self.name}
        body = _dumps({**header, "old_directory": self.old_directory, "over": self.over}) + _lines(self.steps)
        return body + _dumps({"sha256": _digest(body)})


AnyJournal: TypeAlias = Journal | RootJournal | SwapJournal


def parse(data: bytes) -> AnyJournal:
    """Parse the content of a journal of any form. Raises `JournalError`, also for keys that are none."""
    lines = data.splitlines(keepends=True)
    try:
        if len(lines) < 2:
            raise ValueError("it is cut off")
        digest = _loads(lines[-1])["sha256"]
        if digest != _digest(b"".join(lines[:-1])):
            raise ValueError("its digest is wrong")
        header = _loads(lines[0])
        identifier, directory = _id(header["id"]), str(header["directory"])
        if header[_FORM] == 2:
            return RootJournal(identifier, directory, *(_names(header[which]) for which in ("old", "new")))
        if header[_FORM] not in (1, 3):
            raise ValueError(f"its form is {header[_FORM]!r}, and this version of tessarr reads 1 to 3")
        steps = [_step(_loads(line)) for line in lines[1:-1]]
        if len({step.key for step in steps}) < len(steps):
            raise ValueError("a key occurs twice")
        if header[_FORM] == 1:
            return Journal(identifier, directory, steps)
        name, old_directory = _tree_name(header["name"], identifier), str(header["old_directory"])
        return SwapJournal(identifier, directory, name, old_directory, steps, _keys(header["over"]))
    except (ValueError, KeyError, TypeError, TessarrError) as error:
        raise JournalError(
            "the journal of a transaction is damaged, and nothing of it was carried out",
            got=str(error),
            hint="Rename the file: the values stay as they are",
        ) from error


def _lines(steps: Iterable[Step]) -> bytes:
    # Formatted here, because a transaction has a line per chunk, and encoding a dictionary takes ten times as long.
    lines = []
    for key, old, new, changed in steps:
        was = "null" if old is None else encode_basestring(old)
        becomes = "null" if new is None else encode_basestring(new)
        end = "" if changed is None else f',"changed":{changed}'
        lines.append(f'{{"key":{encode_basestring(key)},"old":{was},"new":{becomes}{end}}}\n')
    return "".join(lines).encode()


def dump_pointer(identifier: str, above: int) -> bytes:
    """Return the content of a pointer to the journal that is `above` directories above."""
    return f'{{"{_FORM}":1,"id":"{identifier}","above":{above}}}\n'.encode()


def parse_pointer(data: bytes) -> tuple[str, int] | None:
    """Parse a pointer to the id of the transaction, and the number of directories up to the journal; ``None``: no pointer."""
    if not data:
        return None
    try:
        found = _loads(data)
        above = found["above"]
        if type(above) is not int or not 0 <= above <= MAX_ABOVE:
            return None
        return _id(found["id"]), above
    except (ValueError, KeyError, TypeError):
        return None


def _step(found: dict[str, object]) -> Step:
    key, old, new, changed = _key(found["key"]), found["old"], found["new"], found.get("changed")
    if not isinstance(old, str | None) or not isinstance(new, str | None):
        raise TypeError(f"a version of {key!r} is not a string")
    if not isinstance(changed, int | None):
        raise TypeError(f"the time of {key!r} is not an integer")
    return Step(key, old, new, changed)


def _key(found: object) -> str:
    if not isinstance(found, str):
        raise TypeError("a key is not a string")
    check_key(found)
    if any(map(is_hidden, found.split("/"))):
        raise ValueError(f"{found!r} is the name of a temporary file")
    return found


def _keys(found: object) -> tuple[str, ...]:
    if not isinstance(found, list):
        raise TypeError("the keys are not a list")
    return tuple(map(_key, found))


def _tree_name(found: object, identifier: str) -> str:
    """Parse the name of the old tree of a swap."""
    if (
        not isinstance(found, str)
        or "/" in found
        or "\0" in found
        or not (found[:1] == "." and found.endswith(f".{identifier}{TEMPORARY_SUFFIX}"))
    ):
        raise ValueError(f"{found!r} is not the name of an old tree")
    return found


def _names(found: object) -> tuple[str, ...]:
    """Parse the names of entries of a directory."""
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found) or len({*found}) < len(found):
        raise TypeError("the entries are not a list of different names")
    for name in found:
        if name in ("", ".", "..") or "/" in name or "\0" in name or is_hidden(name):
            raise ValueError(f"{name!r} is not the name of an entry")
    return tuple(found)


def _id(found: object) -> str:
    if not isinstance(found, str) or _IS_ID(found) is None:
        raise ValueError(f"the id is {found!r}")
    return found


def _digest(body: bytes) -> str:
    import hashlib

    return hashlib.sha256(body).hexdigest()


_ENCODER = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False)


def _dumps(value: dict[str, object]) -> bytes:
    return _ENCODER.encode(value).encode() + b"\n"


def _loads(line: bytes) -> dict[str, object]:
    try:
        found = json.loads(line)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(found, dict):
        raise TypeError("a line is not a JSON object")
    return found

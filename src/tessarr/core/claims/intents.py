"""Intents: what a transaction of level *publish* leaves in the documents that it changes, and the record that it is bound to.

A store that can replace one value conditionally, and no two at once, gets the changes of several documents so: the transaction
stores a *record* with the old and the new content of each; adds its *intent* to each, which keeps every other writer of the
library out; stores the appended rows in regions that the same update reserved; and replaces the record by one that says
"committed". That is the commit point. Then the documents are replaced, and the record is removed.

>>> document = with_intent({"zarr_format": 3}, Intent("0123456789abcdef", 0))
>>> document["tessarr_transaction"]
{'must_understand': False, 'id': '0123456789abcdef', 'up': 0}
>>> intent_of(document)
Intent(id='0123456789abcdef', up=0)

All functions here are pure. `tessarr.core.claims.settle` does the I/O.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeGuard, cast

from tessarr.common import strict_json
from tessarr.errors import JournalError, KeyValidationError, MetadataValidationError
from tessarr.metadata import formats, reservations, serialize
from tessarr.stores.path import check_key, prefix_of
from tessarr.stores.protocols import CLAIM as MEMBER
from tessarr.stores.protocols import may_be_claimed
from tessarr.types import Buffer, JSONObject

RECORD = ".tessarr_transaction."
"""Prefix of the name of a record; the rest is the transaction's id."""
CLAIM = ".tessarr_claim"
"""Name of the object that has the intent of a document which the transaction creates, until the document is there."""
NAME = "zarr.json"
_ID_LENGTH = 64
_DEEPEST = 1000


class Intent(NamedTuple):
    """The claim of a transaction on a document."""

    id: str
    """Of the transaction: letters, digits and hyphens."""
    up: int
    """How many levels above the node the record is."""

    def record_key(self, key: str) -> str | None:
        """Return the key of the record, for the intent in the document at `key`; ``None``: it is above the store's root.

        >>> Intent("0123456789abcdef", 1).record_key("g/a/zarr.json")
        'g/.tessarr_transaction.0123456789abcdef'
        """
        names = key.split("/")[:-1]
        if self.up > len(names):
            return None
        return prefix_of("/".join(names[: len(names) - self.up])) + RECORD + self.id


def intent_in(data: Buffer | None, key: str) -> Intent | None:
    """Return the intent in a stored document."""
    if data is None or not may_be_claimed(data):
        return None
    try:
        return intent_of(formats.loads(NAME, data, key=key))
    except MetadataValidationError:
        return None  # the parser of the document says what is wrong


def intent_of(document: object) -> Intent | None:
    """Return the intent in a document; a member of another form is not one."""
    member = document.get(MEMBER) if isinstance(document, Mapping) else None
    if not isinstance(member, Mapping):
        return None
    identifier, up = member.get("id"), member.get("up")
    return Intent(identifier, up) if _is_id(identifier) and _is_count(up) and up < _DEEPEST else None


def with_intent(document: JSONObject, intent: Intent) -> JSONObject:
    """Return `document` with an intent."""
    return {**document, MEMBER: {"must_understand": False, "id": intent.id, "up": intent.up}}


def _is_count(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _is_id(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _ID_LENGTH and value.isascii() and value.replace("-", "").isalnum()


State = Literal["pending", "committed", "void"]


class Region(NamedTuple):
    """The rows that a transaction appends to an array."""

    axis: int
    length: int


class Change(NamedTuple):
    """How a transaction changes one document, or creates it."""

    old: bytes | None
    """``None``: there is no document yet."""
    new: bytes
    region: Region | None = None

    def claimed(self, key: str, intent: Intent, since: int) -> bytes:
        """Return the old content with the intent, and with the reservation of the region; of a new document its claim.

        Raises `MetadataValidationError` for invalid reservations.
        """
        document = {} if self.old is None else formats.loads(NAME, self.old, key=key)
        if self.region is not None:
            axis, length = self.region
            shape = document.get("shape") if isinstance(document, dict) else None
            if not isinstance(shape, list) or axis >= len(shape) or not _is_count(shape[axis]):
                raise JournalError("the record of a transaction appends to what is no such array", key=key)
            pending = reservations.parse(document)
            if pending is None:
                pending = reservations.Reservations(axis=axis, stop=document["shape"][axis])
            document = pending.reserve(length, intent.id, since).with_member(document)
        return serialize.dumps({NAME: with_intent(document, intent)})[NAME]


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """What a transaction changes, and what has become of it."""

    id: str
    state: State
    since: int
    """Seconds since 1970 by the clock of the process that commits. No decision but that to wait no longer depends on it."""
    stores: bool = False
    """Whether values may have been stored: rows in the reserved regions, so that no other append may get these, or chunks of
    new arrays, so that the claims of these stay."""
    helped: bool = False
    """Whether another process has begun to complete the transaction."""
    ended: int | None = None
    """When it was made void, in seconds since 1970."""
    changes: Mapping[str, Change]
    """By the keys of the documents, relative to the record."""

    def with_state(self, state: State) -> Record:
        """Return the record of the same changes in another state."""
        return replace(self, state=state)

    def dumps(self) -> bytes:
        """Serialise the record."""
        changes: JSONObject = {
            key: {
                "old": None if change.old is None else change.old.decode(),
                "new": change.new.decode(),
                "region": None if change.region is None else list(change.region),
            }
            for key, change in self.changes.items()
        }
        members: JSONObject = {
            "id": self.id,
            "state": self.state,
            "since": self.since,
            "stores": self.stores,
            "helped": self.helped,
            "ended": self.ended,
            "changes": changes,
        }
        return strict_json.dumps(members)

    @classmethod
    def parse(cls, data: Buffer, key: str) -> Record:
        """Parse the record that is stored at `key`. Raises `JournalError` for one that no transaction has written."""
        try:
            found = strict_json.plain(strict_json.loads(data, key=key))
            changes = {name: _change(change) for name, change in found["changes"].items() if _is_document_key(name)}
            state, since, stores, helped, ended = (
                found[name] for name in ("state", "since", "stores", "helped", "ended")
            )
            if (
                len(changes) == len(found["changes"])
                and state in ("pending", "committed", "void")
                and key.rpartition("/")[2] == RECORD + found["id"]
                and _is_count(since)
                and isinstance(stores, bool)
                and isinstance(helped, bool)
                and (ended is None or _is_count(ended))
            ):
                return cls(
                    id=found["id"],
                    state=cast("State", state),
                    since=since,
                    stores=stores,
                    helped=helped,
                    ended=ended,
                    changes=changes,
                )
        except (MetadataValidationError, KeyError, TypeError, ValueError, AttributeError):
            pass
        raise JournalError(
            "the record of a transaction is damaged",
            key=key,
            hint="Remove the object: the documents that name it keep their old content",
        )

    @property
    def may_have_stored_new(self) -> bool:
        """Whether chunks of new arrays may have been stored."""
        return self.stores and any(change.old is None for change in self.changes.values())

    def claim_key(self, key: str) -> str:
        """Return where the intent for the document at `key` (relative) is."""
        return claim_of(key) if self.changes[key].old is None else key

    def claimed(self, key: str) -> bytes:
        """Return what is stored at `claim_key` while the transaction claims the document at `key` (relative)."""
        return self.changes[key].claimed(key, Intent(self.id, key.count("/")), self.since)

    def created(self, key: str) -> bytes:
        """Return the new document at `key` (relative) with the intent, as it is stored until its claim is removed."""
        document = formats.loads(NAME, self.changes[key].new, key=key)
        return serialize.dumps({NAME: with_intent(document, Intent(self.id, key.count("/")))})[NAME]


def claim_of(key: str) -> str:
    """Return the key of the claim of a document that does not exist yet.

    >>> claim_of("g/a/zarr.json")
    'g/a/.tessarr_claim'
    """
    return key.removesuffix(NAME) + CLAIM


def _is_document_key(key: str) -> bool:
    try:
        check_key(key)
    except KeyValidationError:
        return False
    return key.rpartition("/")[2] == NAME


def _change(found: Mapping[str, object]) -> Change:
    region = None
    if found["region"] is not None:
        axis, length = cast("list[object]", found["region"])
        if not _is_count(axis) or not _is_count(length):
            raise ValueError("a region is two numbers")
        region = Region(axis, length)
    old, new = found["old"], found["new"]
    if not isinstance(old, str | None) or not isinstance(new, str):
        raise TypeError("a document is a text")
    return Change(None if old is None else old.encode(), new.encode(), region)


def released(data: bytes, key: str, record: Record | None, intent: Intent) -> bytes:
    """Return a document that has `intent` as it is without: its transaction is void.

    The rows that it reserved are given back, unless `record` says that some may have been stored.
    """
    relative = key.split("/")[-1 - intent.up :]
    change = None if record is None else record.changes.get("/".join(relative))
    keeps = record is not None and record.stores
    old = None if change is None else change.old
    if record is not None and old is not None and not keeps and data == record.claimed("/".join(relative)):
        return old
    document = {name: value for name, value in formats.loads(NAME, data, key=key).items() if name != MEMBER}
    pending = None if keeps else reservations.parse(document)
    if pending is not None and pending.of(intent.id) is not None:
        document = (pending.retract(intent.id) or pending).with_member(document)
    return serialize.dumps({NAME: document})[NAME]

"""Reserve regions of an array, so that writers without a common lock can append to it without losing data.

While appends are pending, the array's document has an additional member, which other readers ignore:

>>> document = {"shape": [100], "tessarr_append": {
...     "must_understand": False, "axis": 0, "stop": 120, "reserved": [[100, 110, "a1b2", 1700000000]]}}
>>> parse(document)
Reservations(axis=0, stop=120, reserved=(Region(start=100, stop=110, owner='a1b2', since=1700000000),), voided=(), closed=None)

A writer reserves the next region by compare-and-swap in the document (`reserve`), stores its data there, beyond the shape
and so invisible, and removes its region from the reserved ones (`publish`). The shape always ends at the start of the first
region that is still reserved: readers see complete data only, in the order of the regions. An abandoned region never gets
the data of another append. Another process takes it over (`take_over`), fills it with fill value and publishes it;
``voided`` records it, so that the first owner, if it is still alive, gets an error: its data is not in the array.

All functions here are pure: documents in, documents out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tessarr.errors import MetadataValidationError, Problem
from tessarr.metadata.array import PENDING

MEMBER = PENDING
_MOST = 100_000
"""Limit on the regions in one document; a document with more is hostile."""


class Region(NamedTuple):
    """The half-open interval of an axis that one append writes."""

    start: int
    stop: int
    owner: str
    """A random name, unique to the append."""
    since: int
    """Seconds since 1970 by the owner's clock. Only the expiry of the region depends on it, never correctness."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservations:
    """The pending appends along one axis of an array."""

    axis: int
    """The axis of the regions."""
    stop: int
    """Start of the next region: after all regions that were ever reserved, published ones included."""
    reserved: tuple[Region, ...] = ()
    """Unpublished regions, ordered by `Region.start`."""
    voided: tuple[Region, ...] = ()
    """Regions published as fill value because their owner did not come back."""
    closed: tuple[str, int] | None = None
    """Owner and time of a resize that still removes chunks beyond its new shape: until the resize ends, no writer reserves."""

    def published(self) -> int:
        """Return the length of the axis that is visible to readers."""
        return self.reserved[0].start if self.reserved else self.stop

    def of(self, owner: str) -> Region | None:
        """Return the reserved region of `owner`."""
        return next((region for region in self.reserved if region.owner == owner), None)

    def was_voided(self, owner: str) -> bool:
        """Return whether another process took over the region of `owner`."""
        return any(region.owner == owner for region in self.voided)

    # -- changes: each returns the new reservations ---------------------------------------------------------------

    def reserve(self, length: int, owner: str, now: int) -> Reservations:
        """Add a region of `owner` after all others."""
        region = Region(self.stop, self.stop + length, owner, now)
        return replace(self, stop=region.stop, reserved=(*self.reserved, region))

    def publish(self, owner: str) -> Reservations:
        """Remove the region of `owner`, whose data is stored, from the reserved ones."""
        return replace(self, reserved=tuple(region for region in self.reserved if region.owner != owner))

    def retract(self, owner: str) -> Reservations | None:
        """Remove the region of `owner`, which stored nothing; ``None`` when other regions follow it."""
        region = self.of(owner)
        if region is None or region.stop != self.stop:
            return None
        return replace(self.publish(owner), stop=region.start)

    def take_over(self, region: Region, owner: str, now: int) -> Reservations:
        """Make `owner` the owner of an abandoned region, to fill and publish it."""
        mine = region._replace(owner=owner, since=now)
        reserved = tuple(mine if other == region else other for other in self.reserved)
        known = any((old.start, old.stop) == (region.start, region.stop) for old in self.voided)
        return replace(self, reserved=reserved, voided=self.voided if known else (*self.voided, region))

    def abandoned(self, now: int, expire_s: float, before: int | None = None) -> tuple[Region, ...]:
        """Return the regions (those that start below `before`) that are reserved for `expire_s` or longer, or since then in the
        future, by a clock that is wrong."""
        return tuple(
            region
            for region in self.reserved
            if abs(now - region.since) >= expire_s and (before is None or region.start < before)
        )

    def is_left_closed(self, now: int, expire_s: float) -> bool:
        """Whether a resize closed the array `expire_s` seconds ago or earlier, or in the future, by a clock that is wrong."""
        return self.closed is not None and abs(now - self.closed[1]) >= expire_s

    def to_json(self, length: int) -> dict[str, Any] | None:
        """Return the member for an axis of that length; ``None`` when there is nothing to record."""
        if not self.reserved and not self.voided and not self.closed and self.stop == length:
            return None
        members: dict[str, object] = {"must_understand": False, "axis": self.axis}
        if self.reserved or self.stop != length:
            members["stop"] = self.stop
        if self.reserved:
            members["reserved"] = [list(region) for region in self.reserved]
        if self.voided:
            members["voided"] = [list(region) for region in self.voided]
        if self.closed:
            members["closed"] = list(self.closed)
        return members

    def with_member(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Return `document` with the member, or without it where there is nothing to record."""
        rest = {name: value for name, value in document.items() if name != MEMBER}
        member = self.to_json(document["shape"][self.axis])
        return rest if member is None else {**rest, MEMBER: member}


def parse(document: Mapping[str, object]) -> Reservations | None:
    """Parse the reservations in a v3 array document; ``None`` without reservations.

    Raises `MetadataValidationError` for an invalid member.
    """
    member = document.get(MEMBER)
    return None if member is None else parse_member(member, document.get("shape"))


def parse_member(member: object, shape: Any) -> Reservations:
    """Parse the reservations in `member`, of an array whose stored shape is `shape`. See `parse`."""
    problems: list[Problem] = []

    def add(message: str, *loc: str | int) -> None:
        problems.append(Problem((MEMBER, *loc), "value", message))

    fields = member if isinstance(member, Mapping) else {}
    if not isinstance(member, Mapping):
        add(f"must be an object, got {member!r}")
    axis: Any = fields.get("axis")
    if not _is_count(axis) or not isinstance(shape, list | tuple) or axis >= len(shape):
        add(f"must be an axis of the shape {shape!r}, got {axis!r}", "axis")
    reserved = _regions(fields.get("reserved", ()), "reserved", add)
    voided = _regions(fields.get("voided", ()), "voided", add)
    closed = fields.get("closed")
    if closed is not None:
        owned = isinstance(closed, list | tuple) and len(closed) == 2 and isinstance(closed[0], str)
        if not owned or not _is_count(closed[1]):
            add(f"must be [owner, since], got {closed!r}", "closed")
    # Without pending regions the next one starts where the array ends.
    stop: Any = fields.get("stop", None if problems or reserved else shape[axis])
    after = [*(region.start for region in reserved[1:]), stop]
    if not problems and (not _is_count(stop) or any(a.stop > b for a, b in zip(reserved, after, strict=False))):
        add(f"regions must follow one another and end at {stop!r} or before", "reserved")
    if problems:
        hint = "Remove the member once no writer appends to the array any more; published data stays"
        raise MetadataValidationError("invalid reservations of appends", problems, hint=hint)
    return Reservations(
        axis=axis, stop=stop, reserved=reserved, voided=voided, closed=None if closed is None else tuple(closed)
    )


def _regions(value: object, name: str, add: Any) -> tuple[Region, ...]:
    if not isinstance(value, Sequence) or isinstance(value, str) or len(value) > _MOST:
        add(f"must be a list of at most {_MOST:,} regions", name)
        return ()
    found: list[Region] = []
    for position, item in enumerate(value):
        if not isinstance(item, Sequence) or isinstance(item, str) or len(item) != 4 or not _is_region(item):
            add(f"must be [start, stop, owner, since], got {item!r}", name, position)
        else:
            found.append(Region(*item))
    return tuple(found)


def _is_region(item: Sequence[Any]) -> bool:
    start, stop, owner, since = item
    return all(map(_is_count, (start, stop, since))) and start < stop and isinstance(owner, str)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0

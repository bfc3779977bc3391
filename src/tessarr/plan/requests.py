"""Count the requests by which boxes are read, and values written. Pure.

A chunk is one request, and so is a shard that is read whole; of another shard the index is one, and what is wanted of its inner
chunks another. The client of an object store (`Network`) cuts long values, and requests inner chunks that lie far apart one by
one. How long encoded chunks are is not known when work is planned: they are taken to be as long as their elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise, product
from math import lcm, prod
from typing import NamedTuple, TypeAlias

from tessarr.plan.cost import reads_along
from tessarr.plan.tiling import Tiling
from tessarr.types import ByteRange, Shape

_COUNTED = 10_000
"""So many boxes, or combinations of them, or inner chunks, are looked at one by one."""
_ENTRY = 16
"""Bytes of the index of a shard for an inner chunk."""
_CHECKSUM = 4
"""Bytes of the checksum of an index."""


class Network(NamedTuple):
    """How the client of an object store makes requests: limits in bytes, see `tessarr.stores.remote.coalesce`."""

    max_gap: int
    max_request: int
    part: int
    """Of a long value, or range."""
    big: int
    """A value from this length on is read in parts, the first of which the request for the whole value answers."""
    multipart: int
    """A value from this length on is stored in parts."""
    upload: int
    """Of a value that is stored."""

    def gets(self, nbytes: int) -> int:
        """Count the requests that read a value."""
        return 1 if nbytes < self.big else -(-nbytes // self.part)

    def puts(self, nbytes: int) -> int:
        """Count the requests that store a value: in parts, also those that begin and complete it."""
        return 1 if nbytes < self.multipart else 2 + -(-nbytes // self.upload)


_SCHEMES = ("s3", "s3a", "gs", "gcs", "az", "azure", "abfs", "abfss", "http", "https")


def network_of(url: str) -> Network | None:
    """Return how requests are made to the place at a URL; ``None`` for one whose values are read and stored as they are."""
    scheme, colon, _ = url.partition("://")
    if not colon or scheme.lower().partition("+")[0] not in _SCHEMES:
        return None
    from tessarr.stores.remote import coalesce  # here, since other places need none of it

    return Network(
        *coalesce.coalescing(), coalesce.PART_SIZE, coalesce.BIG, coalesce.MULTIPART_FROM, coalesce.UPLOAD_SIZE
    )


def gets(network: Network | None, nbytes: int) -> int:
    """Count the requests that read a value."""
    return 1 if network is None else network.gets(nbytes)


def puts(network: Network | None, nbytes: int) -> int:
    """Count the requests that store a value."""
    return 1 if network is None else network.puts(nbytes)


def shard_nbytes(shards: Shape, chunks: Shape, itemsize: int) -> int:
    """Return the bytes of a stored shard, its index included, that does not compress."""
    return prod(shards) * itemsize + _ENTRY * prod(shards) // prod(chunks) + _CHECKSUM


@lru_cache(maxsize=1 << 14)
def _spans(network: Network, counts: Shape, grid: Shape, nbytes: int) -> int:
    """Count the requests for a box of `counts` inner chunks, each of `nbytes`, that lie in C order; at most."""
    from tessarr.stores.remote.coalesce import plan_spans

    if prod(counts) > _COUNTED:
        return prod(counts) * -(-nbytes // network.part)
    steps = [nbytes * prod(grid[axis + 1 :]) for axis in range(len(grid))]
    starts = (sum(map(int.__mul__, at, steps)) for at in product(*map(range, counts)))
    ranges = [ByteRange(start, start + nbytes) for start in starts]
    limits = {"max_gap": network.max_gap, "max_request": network.max_request, "part_size": network.part}
    return len(plan_spans(ranges, **limits))


class Shards(NamedTuple):
    """How the shards of an array are read."""

    shards: Shape
    chunks: Shape
    network: Network | None = None
    nbytes: int = 0
    """Of an inner chunk."""
    whole: bool = True
    """Whether a shard of which at least half is wanted is read whole; else its index is always read first."""

    @property
    def grid(self) -> Shape:
        """How many inner chunks a shard has along each axis."""
        return tuple(shard // chunk for shard, chunk in zip(self.shards, self.chunks, strict=True))

    @property
    def value_nbytes(self) -> int:
        """Bytes of a whole shard."""
        return prod(self.grid) * (self.nbytes + _ENTRY) + _CHECKSUM

    def requests(self, counts: Shape, *, covered: bool) -> int:
        """Count the requests that read a box of inner chunks; `covered`: all of the shard that is in the array."""
        grid = self.grid
        if self.whole and (covered or 2 * prod(counts) >= prod(grid)):
            return gets(self.network, self.value_nbytes)
        return 2 if self.network is None else 1 + _spans(self.network, counts, grid, self.nbytes)


Wanted: TypeAlias = "Counter[tuple[int, bool]]"
"""How often so many inner chunks of a shard are read along an axis, and whether these are all that it has."""


def wanted_along(length: int, intervals: Iterable[tuple[int, int]], shard: int, chunk: int) -> Wanted:
    """Count what intervals of an axis of some `length` want of its shards, in inner chunks of length `chunk`.

    >>> sorted(wanted_along(10, [(0, 7), (7, 10)], 4, 2).items())
    [((1, False), 1), ((1, True), 1), ((2, False), 1), ((2, True), 1)]
    """
    found: Wanted = Counter()
    for start, stop in intervals:
        first, last = start // shard, (stop - 1) // shard
        if last - first > 1:
            found[shard // chunk, True] += last - first - 1
        for number in {first, last}:
            low, high = number * shard, min(length, (number + 1) * shard)
            begin, end = max(start, low), min(stop, high)
            found[(end - 1) // chunk - begin // chunk + 1, (begin, end) == (low, high)] += 1
    return found


def requests_for_shards(wanted: Sequence[Wanted], read: Shards) -> int:
    """Count the requests that read shards; at most, where very many unlike boxes are wanted over a network."""
    if read.network is None or prod(map(len, wanted)) > _COUNTED:
        return _in_total(wanted, read)
    total = 0
    for along in product(*(axis.items() for axis in wanted)):
        counts = tuple(count for (count, _), _ in along)
        covered = all(whole for (_, whole), _ in along)
        total += prod(times for _, times in along) * read.requests(counts, covered=covered)
    return total


def _in_total(wanted: Sequence[Wanted], read: Shards) -> int:
    """Count the requests by how many inner chunks are wanted; over a network at most one for each of those, and the index."""
    total: Wanted = Counter({(1, True): 1})
    for along in wanted:
        grown: Wanted = Counter()
        for (count, whole), times in total.items():
            for (more, all_of_it), times_along in along.items():
                grown[count * more, whole and all_of_it] += times * times_along
        total = grown
    grid = prod(read.grid)
    if read.network is None:
        return sum(times * read.requests((count,), covered=whole) for (count, whole), times in total.items())
    part = -(-read.nbytes // read.network.part)
    value = read.network.gets(read.value_nbytes)
    return sum(
        times * (value if read.whole and (whole or 2 * count >= grid) else 1 + max(1, count) * part)
        for (count, whole), times in total.items()
    )


def reads_of_shards(tiling: Tiling, read: Shards) -> int:
    """Count the requests by which all boxes read shards; exactly, unless an axis has very many unlike boxes: then at most."""
    return requests_for_shards(
        [
            _wanted_by_boxes(tiling, axis, shard, chunk)
            for axis, (shard, chunk) in enumerate(zip(read.shards, read.chunks, strict=True))
        ],
        read,
    )


def _wanted_by_boxes(tiling: Tiling, axis: int, shard: int, chunk: int) -> Wanted:
    length, cut = tiling.shape[axis], tiling.cuts[axis]
    if not isinstance(cut, int):
        return wanted_along(length, pairwise((0, *cut)), shard, chunk)
    period = lcm(cut, shard)
    if min(period, length) > _COUNTED * cut:
        return Counter({(0, False): reads_along(length, cut, shard)})
    periods = length // period
    rest = periods * period
    found = wanted_along(length, ((low, min(length, low + cut)) for low in range(rest, length, cut)), shard, chunk)
    once = wanted_along(period, ((low, low + cut) for low in range(0, period if periods else 0, cut)), shard, chunk)
    return found + Counter({key: periods * times for key, times in once.items()})

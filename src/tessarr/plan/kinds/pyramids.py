"""Build the levels of a pyramid: a task reduces what is under its box of a level, read from the level before.

A level is written beside its place in a file system, and where it replaces one; elsewhere at its place, where it does not exist
before its document. Documents are written when all levels are complete, and then the group's attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, prod
from threading import Lock
from typing import Self, TypedDict, cast

import numpy as np

from tessarr.codecs.sharding import ShardingCodec
from tessarr.conventions import ome
from tessarr.core.array import Array
from tessarr.core.claims.claimed_places import release_place
from tessarr.core.group import Group
from tessarr.core.open import open as open_node
from tessarr.core.stored.parse_cache import parse_document
from tessarr.engine.jobs import Jobs
from tessarr.engine.pool import for_each
from tessarr.engine.processors import processors
from tessarr.grids.base import Axis
from tessarr.grids.regular import RegularGrid
from tessarr.indexing.boxes import Box, box_shape
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import (
    FOR_FLIGHT,
    FOR_THREADS,
    Sizes,
    choose_box,
    longest_chunks,
)
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.markers import DOCUMENTED, Milestones, Receipt
from tessarr.plan.predict import ArrayCosts, Description, value_nbytes
from tessarr.plan.publish import (
    begin_beside,
    check_complete,
    is_node,
    opened_work,
    place_of_sealed,
    put_node_in_place,
    seal,
    write_documents,
)
from tessarr.plan.requests import Network, Shards, gets, network_of, puts, requests_for_shards, wanted_along
from tessarr.plan.strategies import level_boxes as cut
from tessarr.plan.strategies.intermediate import open_target
from tessarr.plan.strategies.limits import limited
from tessarr.plan.strategies.strategy import Strategy
from tessarr.plan.task import compare
from tessarr.plan.tiling import Tiling, tiled
from tessarr.stores.base import Store
from tessarr.stores.path import join, prefix_of
from tessarr.tools.digest import box_digest
from tessarr.tools.pyramid import list_in_labels
from tessarr.tools.pyramid.describe import Describing, attributes_of
from tessarr.tools.pyramid.levels import Level, level_metadata
from tessarr.tools.pyramid.pieces import Held, piece
from tessarr.tools.pyramid.reduce import Method
from tessarr.tools.sources.base import Source
from tessarr.tools.sources.zarr import ZarrSource
from tessarr.types import JSON, AnyArray, JSONObject

FOR_PIECES = 4
"""One part in so many of the memory is for what is read and reduced at once, where a chunk does not need more."""


class _PyramidJSON(TypedDict):
    """A `Pyramid` in JSON."""

    levels: Sequence[tuple[str, Sequence[int], Sequence[int], Sequence[int]]]
    documents: Sequence[JSONObject]
    places: Sequence[str]
    method: Method
    missing: float | int | str | None
    labels: bool
    convention: Describing
    name: str | None
    axes: Sequence[tuple[str, str | None, str | None]] | None
    scale: Sequence[float] | None
    translation: Sequence[float] | None
    piece_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pyramid:
    """What a plan builds: the levels, the array itself first, and what is said about them in the group."""

    levels: tuple[Level, ...]
    documents: tuple[ArrayMetadata, ...]
    """Of the new levels."""
    places: tuple[str, ...]
    """Where tasks write the new levels, below the group."""
    method: Method
    missing: float | int | None
    labels: bool
    convention: Describing
    name: str | None
    axes: tuple[ome.Axis, ...] | None
    scale: tuple[float, ...] | None
    translation: tuple[float, ...] | None
    piece_nbytes: int = 0
    """The most bytes that a thread of a task holds of what it reads and reduces at once."""

    def described(self, group: Group, base: Array) -> JSONObject:
        """Return the attributes of the group with this pyramid."""
        return attributes_of(
            group.attrs.asdict(), base, self.levels, self.convention, self.method, name=self.name, labels=self.labels,
            axes=self.axes, scale=self.scale, translation=self.translation,
        )  # fmt: skip

    def to_json(self) -> JSONObject:
        """Return it as JSON."""
        missing = self.missing if self.missing is None or isfinite(self.missing) else str(self.missing)
        return {
            "levels": [
                [level.name, list(level.shape), list(level.factors), list(level.total)] for level in self.levels
            ],
            "documents": [document.to_dict() for document in self.documents],
            "places": list(self.places),
            "method": self.method,
            "missing": missing,
            "labels": self.labels,
            "convention": self.convention,
            "name": self.name,
            "axes": None if self.axes is None else [list(axis) for axis in self.axes],
            "scale": None if self.scale is None else list(self.scale),
            "translation": None if self.translation is None else list(self.translation),
            "piece_nbytes": self.piece_nbytes,
        }

    @classmethod
    def of(cls, manifest: Manifest) -> Self:
        """Parse the options of a manifest."""
        obj = cast("_PyramidJSON", manifest.options)
        documents = (parse_document(document, group=False) for document in obj["documents"])
        return cls(
            levels=tuple(Level(name, tuple(one), tuple(two), tuple(three)) for name, one, two, three in obj["levels"]),
            documents=tuple(document for document in documents if isinstance(document, ArrayMetadata)),
            places=tuple(obj["places"]),
            method=obj["method"],
            missing=float(obj["missing"]) if isinstance(obj["missing"], str) else obj["missing"],
            labels=obj["labels"],
            convention=obj["convention"],
            name=obj["name"],
            axes=None if obj["axes"] is None else tuple(ome.Axis(*axis) for axis in obj["axes"]),
            scale=None if obj["scale"] is None else tuple(obj["scale"]),
            translation=None if obj["translation"] is None else tuple(obj["translation"]),
            piece_nbytes=obj["piece_nbytes"],
        )


def _read_axes(metadata: ArrayMetadata) -> Sequence[Axis]:
    """Return the chunks that are read as one: inner chunks, where there are shards."""
    first = metadata.codecs[0] if metadata.codecs else None
    grid = RegularGrid(first.chunk_shape) if isinstance(first, ShardingCodec) else metadata.chunk_grid
    return grid.axes(metadata.shape)


def planned_pyramid(
    base: Array, given: Pyramid, memory: int, *, streamed: bool
) -> tuple[tuple[PlannedNode, ...], Pyramid]:
    """Cut the levels of a pyramid into tasks of at most `memory` bytes.

    `streamed`: each thread reads and writes inner chunks one by one. Raises `BaseZarrError` where one stored chunk needs more.
    """
    if len(given.levels) == 1:
        return (), given
    documents = tuple(level_metadata(base, level, given.method) for level in given.levels[1:])
    sources = [_read_axes(metadata) for metadata in (base._metadata, *documents[:-1])]
    reads = [longest_chunks(axes) for axes in sources]
    largest = max(reads, key=prod)
    sizes = [Sizes.of(document, largest, 1, streamed=streamed) for document in documents]
    threads = max(1, min(processors(), memory // max(1, FOR_THREADS * sizes[0].per_thread)))
    per_element = max(cut.bytes_per_element(base.itemsize, level.factors, given.method) for level in given.levels[1:])
    piece_nbytes = max(per_element, memory // FOR_PIECES // threads)
    above = tuple(-(-size // factor) for size, factor in zip(reads[0], given.levels[1].factors, strict=True))
    in_flight = 0 if streamed else max(1, memory // FOR_FLIGHT // threads)
    held = threads * (piece_nbytes + sizes[0].per_thread + in_flight)
    box = choose_box(replace(sizes[0], read=above, threads=0, held=held), memory)
    tilings = [tiled(size.axes, box.longest) for size in sizes]
    stages = cut.stages_of(tilings, given.levels, given.method)
    peak = max(
        replace(size, threads=0, held=held).peak(tiling.longest) for size, tiling in zip(sizes, tilings, strict=True)
    )
    strategy = Strategy("direct", stages, (), "each level is made from the one before it", threads, in_flight, peak)
    node = PlannedNode(given.levels[0].name, "", base._metadata, strategy, reads[0])
    return (node,), replace(given, documents=documents, piece_nbytes=piece_nbytes)


def tilings_of(manifest: Manifest, pyramid: Pyramid) -> list[Tiling]:
    """Return the boxes of the new levels, in elements of these."""
    strategy = manifest.nodes[0].strategy
    assert strategy is not None
    found = []
    for tiling, level in zip(strategy.stages.tilings, pyramid.levels[1:], strict=True):
        cuts = (
            -(-one // by) if isinstance(one, int) else tuple(-(-end // by) for end in one)
            for one, by in zip(tiling.cuts, level.total, strict=True)
        )
        found.append(Tiling(level.shape, tuple(cuts)))
    return found


def _pieces(manifest: Manifest, pyramid: Pyramid) -> Iterator[tuple[Tiling, cut.Pieces, ArrayMetadata]]:
    """Yield, for each new level, its boxes, the pieces of these, and the level that is read for them."""
    nodes = (manifest.nodes[0].metadata, *pyramid.documents)
    for tiling, level, before in zip(tilings_of(manifest, pyramid), pyramid.levels[1:], nodes, strict=False):
        assert isinstance(before, ArrayMetadata)
        read, itemsize = longest_chunks(_read_axes(before)), _itemsize(before)
        yield (
            tiling,
            cut.piece_shapes(tiling, read, level.factors, itemsize, pyramid.method, pyramid.piece_nbytes),
            before,
        )


def _itemsize(metadata: ArrayMetadata) -> int:
    return Sizes.of(metadata, metadata.shape, 1).itemsize


def needs_of(manifest: Manifest) -> Callable[[int], Iterable[int]]:
    """Return a function of the tasks that a task waits for: those that write what it reads."""
    pyramid, strategy = Pyramid.of(manifest), manifest.nodes[0].strategy if manifest.nodes else None
    assert strategy is not None
    return lambda task: cut.needs(strategy.stages, pyramid.levels, pyramid.method, task)


def described_levels(manifest: Manifest) -> Description:
    """Describe what the levels cost, one after the other."""
    if not manifest.nodes:
        return Description(manifest.operation, (), 0)
    pyramid, strategy = Pyramid.of(manifest), manifest.nodes[0].strategy
    assert strategy is not None
    found, network = [], network_of(manifest.source.url)
    for (tiling, pieces, before), level, document in zip(
        _pieces(manifest, pyramid), pyramid.levels[1:], pyramid.documents, strict=True
    ):
        axes, itemsize = _read_axes(before), _itemsize(document)
        intervals = cut.read_intervals(tiling, pieces.read, before.shape, level, pyramid.method)
        read = cut.count_reads(intervals, axes)
        whole, objects = prod(axis.nchunks for axis in axes), document.chunk_grid.get_nchunks(level.shape)
        found.append(
            ArrayCosts(
                path=level.name, strategy=strategy.name, why=strategy.why, tasks=tiling.count,
                blocks=strategy.stages.blocks.count, chunks_read=read,
                requests=_reading(intervals, before, network) + objects * puts(network, value_nbytes(document)),
                amplification=read / whole if whole else 1.0,
                bytes_read=read * prod(longest_chunks(axes)) * itemsize, bytes_written=prod(level.shape) * itemsize,
                objects=objects, temporary_objects=0, temporary_bytes=0,
                peak_memory=_peak(strategy, tiling, pieces, level, before, pyramid.method), inexact=_REDUCED, advice=(),
            )
        )  # fmt: skip
    return Description(manifest.operation, tuple(found), manifest.blocks)


_REDUCED = "at most that; what reducing holds depends on the elements, and on how chunks compress"


def _peak(
    strategy: Strategy, tiling: Tiling, pieces: cut.Pieces, level: Level, before: ArrayMetadata, method: Method
) -> int:
    """Return the most bytes that a task of a level holds: its box, and in each thread a piece, and chunks."""
    itemsize, per_output = _itemsize(before), prod(level.factors)
    reducing = prod(pieces.reduced) * cut.bytes_per_element(itemsize, level.factors, method)
    held = 0 if pieces.read == pieces.reduced else prod(pieces.read) * per_output * itemsize
    at_once = min(strategy.threads, prod(-(-n // one) for n, one in zip(tiling.longest, pieces.read, strict=True)))
    chunks = 4 * itemsize * prod(longest_chunks(_read_axes(before)))
    return min(strategy.memory, prod(tiling.longest) * itemsize + at_once * (reducing + held + chunks))


def _reading(intervals: Sequence[Sequence[tuple[int, int]]], before: ArrayMetadata, network: Network | None) -> int:
    """Count the requests that read intervals of each axis of a level."""
    first, shards = before.codecs[0] if before.codecs else None, before.chunk_grid.axes(before.shape)
    nbytes = _itemsize(before) * prod(longest_chunks(_read_axes(before)))
    if not isinstance(first, ShardingCodec):
        return cut.count_reads(intervals, shards) * gets(network, nbytes)
    lengths = tuple(axis.uniform or 0 for axis in shards)
    if 0 in lengths:
        return 2 * cut.count_reads(intervals, shards)
    wanted = [
        wanted_along(n, along, shard, chunk)
        for n, along, shard, chunk in zip(before.shape, intervals, lengths, first.chunk_shape, strict=True)
    ]
    return requests_for_shards(wanted, Shards(lengths, first.chunk_shape, network, nbytes))


class Levels:
    """The work of a plan that builds a pyramid."""

    def __init__(
        self, manifest: Manifest, source: Source, store: Store, path: str, *, pyramid: Pyramid | None = None
    ) -> None:  # fmt: skip
        base = getattr(source, "node", None)
        assert isinstance(base, Array)
        self._manifest, self._pyramid = manifest, pyramid or Pyramid.of(manifest)
        self.source, self._base = source, base
        self._store, self._path = store, path
        self._pieces = [pieces for _, pieces, _ in _pieces(manifest, self._pyramid)] if manifest.nodes else []
        self._arrays: dict[int, Array] = {}
        self._lock = Lock()

    def begin(self, *, resumed: bool) -> None:
        """Claim the places of work. Raises `ConflictError` where what the tasks of a `resumed` plan wrote was removed."""
        for place in self._pyramid.places:
            begin_beside(self._manifest, self._store, join(self._path, place), resumed=resumed)

    def nbytes_of(self, task: int) -> int:
        """Return the bytes of the elements that a task writes."""
        node, number = self._manifest.locate(task)
        assert node.strategy is not None
        _, stage, whole = node.strategy.stages.locate(number)
        box = cut.in_level(whole, self._pyramid.levels[stage + 1].total)
        nbytes: int = self._level(stage).dtype.itemsize * prod(part.stop - part.start for part in box)
        return nbytes

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Write a box of a level. Raises `BaseZarrError` where the values read back differ."""
        node, number = self._manifest.locate(task)
        assert node.strategy is not None
        _, stage, whole = node.strategy.stages.locate(number)
        level = self._pyramid.levels[stage + 1]
        box = cut.in_level(whole, level.total)
        source, target = self._base if stage == 0 else self._level(stage - 1), self._level(stage)
        threads, in_flight = min(processors(), node.strategy.threads), node.strategy.in_flight
        with limited(threads, in_flight) if threads else nullcontext():
            values = self._reduced(source, target, level, self._pieces[stage], box)
            target[box or ...] = values
            if self._manifest.verify:
                compare(values, target, box)
        return Receipt(task, int(values.nbytes), box_digest(values).hex() if marked else "")

    def _reduced(self, source: Array, target: Array, level: Level, pieces: cut.Pieces, box: Box) -> AnyArray:
        """Compute the values of a box of a level, in parts: as many at once as there are threads."""
        method, missing = self._pyramid.method, self._pyramid.missing
        parts = list(cut.pieces(box, pieces.read))
        if len(parts) == 1 and pieces.read == pieces.reduced:
            return piece(source, box, level.factors, method, missing)
        values: AnyArray = np.empty([part.stop - part.start for part in box], target.dtype)

        def work(part: Box) -> None:
            held = source if pieces.read == pieces.reduced else Held(source, part, level.factors, method)
            for small in cut.pieces(part, pieces.reduced):
                here = tuple(
                    slice(one.start - low.start, one.stop - low.start) for one, low in zip(small, box, strict=True)
                )
                values[here or ...] = piece(held, small, level.factors, method, missing)

        for_each(work, parts)
        return values

    def _level(self, stage: int) -> Array:
        with self._lock:
            array = self._arrays.get(stage)
            if array is None:
                path, metadata = join(self._path, self._pyramid.places[stage]), self._pyramid.documents[stage]
                array = self._arrays[stage] = open_target(self._store, path, metadata)
        return array

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSON:
        """Write the documents of the levels, put these in their places, then describe them in the group."""
        pyramid = self._pyramid
        group = open_node(self._store, path=self._path or None, mode="r+", use_consolidated=False)
        assert isinstance(group, Group)
        new = [
            (join(self._path, level.name), join(self._path, place), document)
            for level, place, document in zip(pyramid.levels[1:], pyramid.places, pyramid.documents, strict=True)
        ]
        group._will_change()
        if not milestones.reached(DOCUMENTED):
            at = {seal(self._store, place) if place != level else level: document for level, place, document in new}
            for place in at:
                check_complete(self._manifest, self._store, place)
            write_documents(self._store, at)
            milestones.reach(DOCUMENTED)
        for number, (level, place, _) in enumerate(new):
            work = place_of_sealed(self._store, place) if place != level else level
            if place != level:
                put_node_in_place(self._manifest, self._store, work, level, milestones, f"cleared{number}")
            else:
                release_place(self._store, work, self._manifest.id)
        described = pyramid.described(group, self._base)
        added = {key: value for key, value in described.items() if group.attrs.get(key) != value}
        if added:
            group.update_attributes(added)
        list_in_labels(group, pyramid.labels, pyramid.convention)
        return None


def discard_levels(
    manifest: Manifest, storage_options: Mapping[str, object] | None = None, written: tuple[Store, str] | None = None
) -> None:
    """Remove what tasks wrote of levels that are not in their places. `written`: as for `opened_work`."""
    pyramid = Pyramid.of(manifest)
    opened = None if manifest.work is None else opened_work(manifest.work, storage_options, written)
    if opened is None:
        return
    store, path = opened
    for level, place in zip(pyramid.levels[1:], pyramid.places, strict=True):
        at = join(path, place)
        if place != level.name or not is_node(store, at):
            store.delete_prefix(prefix_of(at))
            store.delete_prefix(prefix_of(place_of_sealed(store, at)))


_UNBOUNDED = 1 << 62


def build_levels(
    group: Group, base: Array, levels: Sequence[Level], method: Method, missing: float | int | None, *, memory: int,
    jobs: int, done: Mapping[str, int],
) -> Iterator[tuple[str, int, bool]]:  # fmt: skip
    """Fill levels whose documents are in `group` in this process: the tasks of a plan, level by level, `jobs` at once.

    `memory`: the most bytes of a level's source in a box, or one stored chunk of the level. `done`: how many tasks of each
    level are not repeated, from the first one on. Yields, for each task in order, the name of its level, its bytes, and
    whether it was carried out.
    """
    documents = tuple(level_metadata(base, level, method) for level in levels[1:])
    if not documents:  # the array is no longer than a level may be
        return
    befores = (base._metadata, *documents)
    tilings = [
        _boxes(after, before, level, memory)
        for after, before, level in zip(documents, befores, levels[1:], strict=False)
    ]
    stages = cut.stages_of(tilings, levels, method, one_block=True)
    if not stages.count:
        return
    given = Pyramid(
        levels=tuple(levels), documents=documents, places=tuple(level.name for level in levels[1:]), method=method,
        missing=missing, labels=False, convention="multiscales-0.1", name=None, axes=None, scale=None, translation=None,
        piece_nbytes=_UNBOUNDED,
    )  # fmt: skip
    node = PlannedNode(levels[0].name, "", base._metadata, Strategy("direct", stages))
    place = Place("", group.path)
    manifest = Manifest("", "pyramid", place, "zarr", "", place, place, True, False, (node,))
    work = Levels(manifest, ZarrSource(base), group._store, group.path, pyramid=given)
    with Jobs(jobs) as pool:
        for level, tasks in zip(
            levels[1:], stages.ranges(0) if len(tilings) > 1 else [range(stages.count)], strict=True
        ):
            first = done.get(level.name, 0)
            for task in tasks[:first]:
                yield level.name, work.nbytes_of(task), False
            for receipt in pool.map(partial(work.run, marked=False), tasks[first:]):
                yield level.name, receipt.nbytes, True


def _boxes(level: ArrayMetadata, before: ArrayMetadata, made: Level, memory: int) -> Tiling:
    """Tile a level by boxes of whole stored chunks, made of whole chunks of the level before as far as `memory` allows."""
    axes = level.chunk_grid.axes(level.shape)
    chunks = longest_chunks(before.chunk_grid.axes(before.shape))
    read = tuple(-(-size // factor) for size, factor in zip(chunks, made.factors, strict=True))
    most = max(1, memory // prod(made.factors))
    return tiled(axes, box_shape(level.shape, longest_chunks(axes), read, _itemsize(level), most))

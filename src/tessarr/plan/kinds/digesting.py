"""Digest an array or a hierarchy: a task digests one block, and the plan combines these as `tessarr.tools.digest` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import replace
from math import prod
from typing import NamedTuple, Self

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.engine.choose import may_be_native
from tessarr.engine.jobs import Jobs
from tessarr.engine.processors import processors
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import Sizes, innermost, is_plain, longest_chunks
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.markers import Milestones, Receipt, reading_result
from tessarr.plan.predict import COMPRESSED, IN_FLIGHT, ArrayCosts, Description, described_with
from tessarr.plan.strategies.limits import limited
from tessarr.plan.strategies.strategy import direct
from tessarr.plan.tiling import Tiling
from tessarr.settings import config
from tessarr.tools.digest import Digest, block_digest, block_shape, combined, nodes_of
from tessarr.tools.sources.base import Source
from tessarr.tools.staging import local_path
from tessarr.tools.transfer import values_in
from tessarr.types import JSON, JSONObject, Progress, Shape


def planned_digests(node: Array | Group) -> Iterator[PlannedNode]:
    """Plan the digests of a node and everything below it."""
    for path, member in nodes_of(node):
        metadata = member._metadata
        if isinstance(metadata, ArrayMetadata):
            tiling = Tiling(metadata.shape, tuple(max(1, size) for size in block_shape(metadata.shape)))
            read = longest_chunks(metadata.chunk_grid.axes(metadata.shape))
            yield PlannedNode(path, path, metadata, direct(tiling), read)
        else:
            yield PlannedNode(path, path, replace(metadata, consolidated_metadata=None), None)


LOADED = 1_700_000
"""Bytes of code and buffers that a process has loaded once it has digested a block, as measured."""
_CACHE = 128 << 20
"""The bytes of decoded chunks that a process keeps for further blocks, unless ``cache.nbytes`` says otherwise."""


def described_digests(manifest: Manifest) -> Description:
    """Describe what digests read; they write nothing."""
    native = local_path(manifest.source.url) is not None and may_be_native()

    def costs(node: PlannedNode, metadata: ArrayMetadata, costs: ArrayCosts) -> ArrayCosts:
        found = _costs(node, metadata, costs)
        return found if native else replace(found, inexact=IN_FLIGHT)

    return described_with(manifest, costs)


class _Reading(NamedTuple):
    """How the tasks of an array read its chunks."""

    plain: bool
    """Whether encoded chunks are their elements."""
    chunk: Shape
    part: Shape
    """What a block holds of a chunk at most."""
    block: int
    """Bytes of a block."""
    kept: int
    """Bytes of decoded chunks that lie in further blocks, which the process may keep; 0 where no chunk does."""

    @classmethod
    def of(cls, node: PlannedNode, metadata: ArrayMetadata) -> Self:
        """Return how the tasks of an array read its chunks."""
        assert node.tiling is not None
        chain, itemsize = innermost(metadata), Sizes.of(metadata, node.read, 1).itemsize
        block, chunk = node.tiling.longest, tuple(map(min, metadata.shape, chain.spec.shape))
        part = tuple(map(min, block, chunk))
        under = prod(-(-n // one) * one for n, one in zip(block, chunk, strict=True))
        return cls(is_plain(chain), chunk, part, itemsize * prod(block), 0 if part == chunk else itemsize * under)

    @property
    def is_beyond_cache(self) -> bool:
        """Whether the process cannot keep the chunks under a block until the next one needs them."""
        return self.kept > int(config.get("cache.nbytes", _CACHE))


def _costs(node: PlannedNode, metadata: ArrayMetadata, costs: ArrayCosts) -> ArrayCosts:
    """Return the costs of an array: a task holds a block, and in each thread what it decodes, or the part of a chunk that it
    reads where that is not read to its place."""
    assert node.tiling is not None
    reading, itemsize, inexact = _Reading.of(node, metadata), Sizes.of(metadata, node.read, 1).itemsize, ""
    block, part = node.tiling.longest, reading.part
    peak = reading.block + LOADED
    at_once = min(processors(), prod(-(-n // one) for n, one in zip(block, part, strict=True)))
    if not reading.plain:
        each = 2 if part == reading.chunk else 3  # encoded, decoded, and what the allocator keeps of those before
        inexact, peak = COMPRESSED, peak + each * at_once * itemsize * prod(reading.chunk)
        if reading.kept and not reading.is_beyond_cache:
            inexact = f"{inexact}, and decoded ones are kept for further blocks (cache.nbytes)"
            peak += int(config.get("cache.nbytes", _CACHE))
    elif part != reading.chunk or part[1:] != block[1:]:
        if any(whole % length for whole, length in zip(reading.chunk, part, strict=True)):
            inexact, at_once = "at most that, as blocks end within chunks", at_once + 1
        peak += at_once * itemsize * prod(part)
    return reading_only(replace(costs, peak_memory=peak, inexact=inexact))


def reading_only(costs: ArrayCosts) -> ArrayCosts:
    """Return the costs of tasks that write nothing."""
    return replace(costs, requests=costs.requests - costs.objects, bytes_written=0, objects=0, advice=())


class Digesting:
    """The work of a plan that digests."""

    def __init__(self, manifest: Manifest, node: Array | Group, source: Source | None = None) -> None:
        self._manifest = manifest
        self.source = source
        self._nodes = nodes_of(node)
        self._arrays = {path: member for path, member in self._nodes if isinstance(member, Array)}
        self._beyond_cache: dict[str, bool] = {}

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Digest a block."""
        node, number = self._manifest.locate(task)
        assert node.tiling is not None
        with limited(processors()) if self._is_beyond_cache(node) else nullcontext():
            values = values_in(self._arrays[node.path], node.tiling.box(number))
        found = block_digest(values).hex()
        return Receipt(task, values.nbytes, found, found)

    def _is_beyond_cache(self, node: PlannedNode) -> bool:
        found = self._beyond_cache.get(node.path)
        if found is None:
            assert isinstance(node.metadata, ArrayMetadata)
            found = self._beyond_cache[node.path] = _Reading.of(node, node.metadata).is_beyond_cache
        return found

    def finish(self, milestones: Milestones, results: Mapping[int, JSON]) -> JSONObject:
        """Combine the digests of the blocks."""
        found = []
        for task in range(self._manifest.tasks):
            with reading_result(task, results[task]):
                found.append(bytes.fromhex(str(results[task])))
        return combined(self._nodes, found, attributes=bool(self._manifest.options["attributes"])).to_json()


def digest_at_once(node: Array | Group, *, attributes: bool, jobs: int, progress: Progress | None) -> Digest:
    """Digest a node in this process: the tasks of a plan, `jobs` at once. The first error ends it."""
    manifest = Manifest(
        "", "digest", Place(""), "zarr", "", None, None, False, False, tuple(planned_digests(node)),
        {"attributes": attributes},
    )  # fmt: skip
    work, results = Digesting(manifest, node), dict[int, JSON]()
    with Jobs(jobs) as pool:
        for receipt in pool.map(work.run, range(manifest.tasks)):
            results[receipt.task] = receipt.result
            if progress is not None:
                progress(len(results), manifest.tasks, f"/{manifest.locate(receipt.task)[0].path}")
    return Digest.from_json(work.finish(Milestones(None), results))

"""Digest an array or a hierarchy: a task digests one block, and the plan combines these as `tessarr.tools.digest` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.engine.jobs import Jobs
from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.cost import longest_chunks
from tessarr.plan.manifest import Manifest, Place, PlannedNode
from tessarr.plan.markers import Milestones, Receipt, reading_result
from tessarr.plan.predict import Description, described
from tessarr.plan.strategies.strategy import direct
from tessarr.plan.tiling import Tiling
from tessarr.tools.digest import Digest, block_digest, block_shape, combined, nodes_of
from tessarr.tools.transfer import values_in
from tessarr.types import JSON, JSONObject, Progress


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


def described_reads(manifest: Manifest) -> Description:
    """Describe what the tasks read; they write nothing."""
    found = described(manifest)
    return replace(
        found,
        arrays=tuple(
            replace(array, requests=array.requests - array.objects, bytes_written=0, objects=0, advice=())
            for array in found.arrays
        ),
    )


class Digesting:
    """The work of a plan that digests."""

    def __init__(self, manifest: Manifest, node: Array | Group) -> None:
        self._manifest = manifest
        self._nodes = nodes_of(node)
        self._arrays = {path: member for path, member in self._nodes if isinstance(member, Array)}

    def run(self, task: int, *, marked: bool = True) -> Receipt:
        """Digest a block."""
        node, number = self._manifest.locate(task)
        assert node.tiling is not None
        values = values_in(self._arrays[node.path], node.tiling.box(number))
        found = block_digest(values).hex()
        return Receipt(task, values.nbytes, found, found)

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

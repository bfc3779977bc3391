"""Check a manifest that was read: whether its numbers fit together, and no two tasks write one stored value. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import get_args

from tessarr.metadata.array import ArrayMetadata
from tessarr.plan.manifest import Manifest, Place, PlannedNode, problem
from tessarr.plan.strategies.strategy import Name, Strategy
from tessarr.plan.tiling import Tiling, ends_within, tiled
from tessarr.stores.path import normalize_path
from tessarr.tools.sources import kinds
from tessarr.tools.staging import beside_node

_OF_FILES = ("rechunk", "convert")
"""Operations whose source may be a file."""


def check_manifest(manifest: Manifest, options: Mapping[str, object], *, writes: bool) -> None:
    """Raise `ValueError` or `TypeError`, saying what is wrong, unless the parts of a manifest fit together.

    `options`: the form of those of the operation, see `tessarr.plan.manifest.problem`. `writes`: whether it writes.
    """
    _require(re.fullmatch("[0-9a-f]{8}", manifest.id) is not None, f"the id {manifest.id!r}")
    _require(manifest.kind in kinds(), f"a source of the format {manifest.kind!r}")
    _require(manifest.kind == "zarr" or manifest.operation in _OF_FILES, f"to {manifest.operation} a file")
    if found := problem(manifest.options, options, "options"):
        raise ValueError(f"{found[0]} should be {found[1]}, not {found[2]!r}")
    _check_places(manifest.target, manifest.work, manifest.id, writes=writes)
    for node in manifest.nodes:
        for path in (node.path, node.source):
            _require(normalize_path(path) == path, f"the path {path!r}")
        if node.strategy is not None:
            _check_strategy(node, node.strategy)
    if manifest.operation == "pyramid":
        _check_levels(manifest)
    elif writes:
        for node in manifest.nodes:
            if node.strategy is not None:
                _check_owners(node, node.strategy)


def _check_places(target: Place | None, work: Place | None, number: str, *, writes: bool) -> None:
    """Check that tasks write at the target, or beside it where `destination` said: what is left there is removed."""
    _require((target is not None) == (work is not None) == writes, "a place to write to, or none,")
    if target is None or work is None or target == work:
        return
    if target.path:
        beside = Place(target.url, beside_node(target.path, number))
    else:
        folder, name = os.path.split(target.url)
        beside = Place(os.path.join(folder, f".{name}.{number}.partial"))
    _require(work == beside, f"to work at {work.url!r}, {work.path!r}")


def _require(right: bool, what: str) -> None:
    if not right:
        raise ValueError(f"{what} cannot be")


def _check_strategy(node: PlannedNode, strategy: Strategy) -> None:
    """Check the numbers of a node, and that stages end where blocks end."""
    assert isinstance(node.metadata, ArrayMetadata)
    ndim, stages = len(node.metadata.shape), strategy.stages
    _require(strategy.name in get_args(Name) and strategy.name != "auto", f"the strategy {strategy.name!r}")
    _require(len(node.read) == ndim and all(node.read), f"chunks {node.read} that are read")
    shards = node.read_shards
    _require(not shards or (len(shards) == ndim and all(shards)), f"shards {shards} that are read")
    _require(bool(stages.tilings), "a strategy without stages")
    for tiling in stages.tilings:
        _require(_aligned(stages.blocks, tiling), f"blocks {stages.blocks.cuts} over boxes {tiling.cuts}")
    last = stages.tilings[-1]
    _require(len(stages.tilings) > 1 or stages.blocks.grid == last.grid, "blocks of several boxes")


def _check_owners(node: PlannedNode, strategy: Strategy) -> None:
    """Check that boxes end where stored values end: those of the target, and of arrays between stages."""
    assert isinstance(node.metadata, ArrayMetadata)
    tilings, between = strategy.stages.tilings, strategy.intermediates
    _require(len(tilings) == len(between) + 1, f"{len(tilings)} stages with {len(between)} arrays between them")
    _require((len(tilings) > 1) == (strategy.name in ("staged", "scratch")), f"the stages of {strategy.name!r}")
    for tiling, array in zip(tilings, between, strict=False):
        shapes = zip(array.shards, array.chunks, strict=True)
        _require(all(0 < chunk <= shard and shard % chunk == 0 for shard, chunk in shapes), f"shards {array.shards}")
        _require(_aligned(tiling, Tiling(tiling.shape, array.shards)), f"boxes {tiling.cuts} of shards {array.shards}")
    _check_owner(tilings[-1], node.metadata)


def _check_owner(tiling: Tiling, metadata: ArrayMetadata) -> None:
    stored = tiled(metadata.chunk_grid.axes(metadata.shape), (1,) * len(metadata.shape))
    _require(tiling.shape == stored.shape, f"boxes of shape {tiling.shape}")
    _require(_aligned(tiling, stored), f"boxes {tiling.cuts} of stored values {stored.cuts}")


def _aligned(boxes: Tiling, among: Tiling) -> bool:
    return len(boxes.cuts) == len(among.cuts) and all(map(ends_within, boxes.shape, boxes.cuts, among.cuts))


def _check_levels(manifest: Manifest) -> None:
    """Check the boxes of each level."""
    from tessarr.plan.kinds.pyramids import Pyramid, tilings_of

    pyramid = Pyramid.of(manifest)
    _require(len(pyramid.levels) - 1 == len(pyramid.documents) == len(pyramid.places), "levels without documents")
    for name in (*pyramid.places, *(level.name for level in pyramid.levels)):
        _require(normalize_path(name) == name != "", f"the level {name!r}")
    for before, level, document in zip(pyramid.levels, pyramid.levels[1:], pyramid.documents, strict=False):
        shape = tuple(-(-size // factor) for size, factor in zip(before.shape, level.factors, strict=True))
        total = tuple(one * factor for one, factor in zip(before.total, level.factors, strict=True))
        _require(level.shape == document.shape == shape and level.total == total, f"the level {level.name!r}")
    if manifest.nodes:
        _require(len(manifest.nodes) == 1, f"{len(manifest.nodes)} arrays")
        _require(pyramid.levels[0].shape == getattr(manifest.nodes[0].metadata, "shape", None), "the first level")
        for tiling, document in zip(tilings_of(manifest, pyramid), pyramid.documents, strict=True):
            _check_owner(tiling, document)

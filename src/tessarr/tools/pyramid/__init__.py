"""Build pyramids: an array at lower and lower resolutions, for viewers and quick looks.

>>> import tessarr
>>> import numpy as np
>>> group = tessarr.create_group(None)
>>> image = group.create_array("0", data=np.arange(36.0).reshape(6, 6), chunks=(4, 4), dimension_names=("y", "x"))
>>> [level.shape for level in build_pyramid(group, "0", levels=2, convention="ome-0.5")]
[(6, 6), (3, 3), (2, 2)]
>>> group["1"][0].tolist(), group.attrs["ome"]["multiscales"][0]["datasets"][1]["path"]
([3.5, 5.5, 7.5], '1')

Every level is made from the one before it. A level has the array's data type, chunks, shards, codecs and attributes; its
length along an axis is the length before divided by the factor, rounded up. Order of writing:

1. the metadata of all levels, and a checkpoint (``.NAME.pyramid.partial`` beside the array)
2. the values, level by level: the tasks of a plan (`tessarr.plan`), each a box of whole stored chunks, held in memory
3. the group's attributes, which make it a pyramid; then the checkpoint is removed

Call again with the same arguments to resume a stopped run: pieces that the checkpoint counts are not repeated, unless the
array's stored values have changed since. The checkpoint is removed once the pyramid is complete. In a ZIP archive, which cannot
delete, levels are stored only when they are complete (`tessarr.tools.pyramid.staged_levels`).
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import closing
from math import prod
from typing import Literal

from tessarr import registry
from tessarr.conventions import ome
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.notebook.bar import shows_progress
from tessarr.core.stored import metadata_io
from tessarr.core.stored.walk import read_entries
from tessarr.errors import ArrayNotFoundError, ReadOnlyError, UnsupportedOperationError
from tessarr.stores.url import StoreLike
from tessarr.stores.virtual.branches import commits
from tessarr.tools.pyramid.describe import Describing, attributes_of, list_label
from tessarr.tools.pyramid.levels import MIN_SIZE, Factors, Level, factors_of, level_metadata, plan
from tessarr.tools.pyramid.pieces import PIECE_NBYTES, Checkpoint
from tessarr.tools.pyramid.reduce import Method, check_method, check_missing
from tessarr.tools.pyramid.staged_levels import copy_levels, publish, staging_group

__all__ = ["Describing", "Level", "Method", "Progress", "build_pyramid"]

Progress = Callable[[int, int, str], None]
"""Called with the number of bytes written, the number of bytes of all levels, and the name of the level."""


@commits
@shows_progress(nbytes=True)
def build_pyramid(
    group: Group | StoreLike,
    array: str,
    *,
    levels: int | None = None,
    min_size: int = MIN_SIZE,
    factors: Factors = 2,
    method: Method | None = None,
    labels: bool = False,
    missing: float | int | None = None,
    convention: Describing = "multiscales-0.1",
    names: Sequence[str] | None = None,
    name: str | None = None,
    axes: Sequence[ome.Axis] | None = None,
    scale: Sequence[float] | None = None,
    translation: Sequence[float] | None = None,
    overwrite: bool = False,
    resume: bool = True,
    memory: int = PIECE_NBYTES,
    jobs: int = 1,
    progress: Progress | None = None,
) -> list[Level]:
    """Build the levels of `array` in its group and describe them; return them, the array itself first.

    `group` is an opened group, or what `tessarr.open_group` accepts; `array` the path of the array below it. `levels` is
    the number of new levels; by default levels are made until no scaled axis is longer than `min_size`. `factors`: one for all
    axes of space (by name, else the last two), one per axis, or by dimension name. `method` is "mean" unless `labels`
    (then "mode"): label values are never mixed. `missing` is a value to ignore (NaN, or the fill value).
    `names` of the levels continue the array's number ("0", "1", …) where it has one.

    `axes`, `scale` and `translation` (physical, per axis) are for OME-Zarr; by default those in the group's attributes
    are kept, or derived from dimension names. `memory` bounds the bytes of a level's source that each of `jobs` threads
    holds at once, or one stored chunk of the level if larger; the work needs a few times that.

    Raises `ArrayNotFoundError`, `ContainsArrayError` when a level exists and not `overwrite`, `ReadOnlyError`,
    `ValueError` for arguments that do not fit, `UnsupportedOperationError` for data types that `method` does not support.
    """
    where = open_writable(group)
    base, made, chosen = levels_of(
        where, array, levels=levels, min_size=min_size, factors=factors, method=method, labels=labels, missing=missing,
        names=names,
    )  # fmt: skip
    described = attributes_of(
        where.attrs.asdict(), base, made, convention, chosen, name=name, labels=labels, axes=axes, scale=scale,
        translation=translation,
    )  # fmt: skip
    with staging_group(where, base) as built:
        checkpoint = Checkpoint.of(built, base, made, chosen, missing, memory, jobs)
        _make(where, built, base, made, chosen, missing, checkpoint, overwrite, resume, memory, jobs, progress)
        added = {key: value for key, value in described.items() if where.attrs.get(key) != value}
        if added:
            where.update_attributes(added)
        list_in_labels(where, labels, convention)
        publish(where, built)
        checkpoint.forget()
    return made


def _make(
    where: Group, built: Group, base: Array, levels: Sequence[Level], method: Method, missing: float | int | None,
    checkpoint: Checkpoint, overwrite: bool, resume: bool, memory: int, jobs: int, progress: Progress | None,
) -> None:  # fmt: skip
    """Make the levels, and publish them."""
    begun = resume and checkpoint.load()
    if not overwrite and not (begun and (built is where or checkpoint.putting)):
        check_free(where, levels, checkpoint.owned() if built is where else set())
    if not begun:
        _create(built, base, levels, method, checkpoint)
    _fill(built, base, levels, method, missing, checkpoint, memory, jobs, progress)
    checkpoint.put()
    copy_levels(where, built, levels[1:])


def levels_of(
    where: Group, array: str, *, levels: int | None, min_size: int, factors: Factors, method: Method | None, labels: bool,
    missing: float | int | None, names: Sequence[str] | None,
) -> tuple[Array, list[Level], Method]:  # fmt: skip
    """Return the array, its levels and the method that the arguments of `build_pyramid` mean; raises its errors."""
    base = where.get(array)
    if not isinstance(base, Array):
        raise ArrayNotFoundError("no array to build levels from", store=where._store.url, path=f"/{where._join(array)}")
    chosen: Method = method or ("mode" if labels else "mean")
    if base._metadata.data_type.may_be_missing:
        raise UnsupportedOperationError("elements that may be missing have no levels", path=base.name)
    check_method(chosen, base.dtype, labels=labels)
    check_missing(missing, base.dtype)
    per_axis = factors_of(factors, base.dims, base.ndim)
    return base, plan(array, base.shape, per_axis, count=levels, min_size=min_size, names=names), chosen


def open_writable(group: Group | StoreLike, storage_options: Mapping[str, object] | None = None) -> Group:
    """Open a group to write to it. Raises `ReadOnlyError`."""
    if not isinstance(group, Group):
        from tessarr.core.open import open_group

        group = open_group(group, mode="r+", storage_options=storage_options)
    assert isinstance(group, Group)
    if group.read_only:
        raise ReadOnlyError(
            "the group is read-only", store=group._store.url, path=group.name, hint="Open it with mode='r+'"
        )
    return group


def check_free(group: Group, levels: Sequence[Level], own: Container[str] = ()) -> None:
    """Raise `ContainsArrayError` or `ContainsGroupError` when a level's path is occupied, other than by a level in `own`."""
    for level in levels[1:]:
        path = group._join(level.name)
        found = read_entries(group._store, [path])[0].kind
        if found is not None and path not in own:
            raise metadata_io._contains_error(found)(
                "the path of a level is occupied", store=group._store.url, path=f"/{path}",
                hint="Replace it with overwrite=True, or choose other names",
            )  # fmt: skip


def _create(group: Group, base: Array, levels: Sequence[Level], method: Method, checkpoint: Checkpoint) -> None:
    """Create the metadata of all levels."""
    metadata = {group._join(level.name): level_metadata(base, level, method) for level in levels[1:]}
    group._will_change()
    checkpoint.begin()
    for path, document in metadata.items():
        metadata_io.create_node(group._store, path, document, overwrite=True)


def _fill(
    built: Group, base: Array, levels: Sequence[Level], method: Method, missing: float | int | None, checkpoint: Checkpoint,
    memory: int, jobs: int, progress: Progress | None,
) -> None:  # fmt: skip
    """Carry out the tasks of a plan in this process; those that the checkpoint counts are skipped."""
    total = sum(prod(level.shape) for level in levels[1:]) * base.dtype.itemsize
    written = 0
    build = registry.higher("tessarr.plan.build_levels")
    tasks = build(built, base, levels, method, missing, memory=memory, jobs=jobs, done=dict(checkpoint.done))
    try:
        with closing(tasks):
            for name, nbytes, is_new in tasks:
                if is_new:
                    checkpoint.advance(name)
                written += nbytes
                if progress is not None:
                    progress(written, total, name)
    finally:
        checkpoint.keep()


def list_in_labels(group: Group, labels: bool, convention: str) -> None:
    """List a label image in the group called "labels" that holds it."""
    above, _, own = group.path.rpartition("/")
    if not labels or convention not in ("ome-0.4", "ome-0.5") or above.rpartition("/")[2] != "labels":
        return
    parent = Group(group._store, above)
    version: Literal["0.4", "0.5"] = "0.4" if convention == "ome-0.4" else "0.5"
    parent.update_attributes(list_label(parent.attrs.asdict(), own, version))

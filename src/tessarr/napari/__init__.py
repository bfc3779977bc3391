"""A reader of napari (npe2): arrays, OME-Zarr images with their levels, scales and units, and their labels.

``napari --plugin tessarr IMAGE.zarr`` opens a directory, an archive or a URL that `tessarr.open` takes. Each level is a dask
array with one block per chunk (of shards: per inner chunk), read when it is shown.

>>> import numpy as np, tempfile, tessarr
>>> place = tempfile.mkdtemp() + "/a.zarr"
>>> tessarr.create_array(place, data=np.zeros((4, 6), "u1"), dimension_names=("y", "x")).shape
(4, 6)
>>> [(data, options, kind)] = read(place)
>>> kind, options["name"], options["axis_labels"], data.shape
('image', 'a', ['y', 'x'], (4, 6))

Source: npe2's manifest, contribution ``readers``; the arguments of napari's ``add_image`` and ``add_labels``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias, cast

from tessarr.conventions.ome import images
from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.core.open import open as open_node
from tessarr.errors import TessarrError

if TYPE_CHECKING:
    import dask.array as da

Kind: TypeAlias = Literal["image", "labels"]
LayerData: TypeAlias = "tuple[da.Array | list[da.Array], dict[str, object], Kind]"
"""A layer of napari: data (levels, the highest resolution first), arguments of ``add_image`` or ``add_labels``, kind."""


def get_reader(path: str | Sequence[str]) -> Callable[[str], list[LayerData]] | None:
    """Return `read` for a place that holds an array or an OME-Zarr image; ``None`` for anything else, and for several paths."""
    if not isinstance(path, str):
        return None
    try:
        node = open_node(path, mode="r")
    except (TessarrError, OSError, ValueError):
        return None
    return read if isinstance(node, Array) or images.read(node.attrs) else None


def read(path: str) -> list[LayerData]:
    """Read the layers at `path`: an array, or the images of an OME-Zarr group and, after them, their labels.

    Raises what `tessarr.open` raises.
    """
    node = open_node(path, mode="r")
    stem = path.rstrip("/").rpartition("/")[2].partition(".")[0]
    if isinstance(node, Array):
        options: dict[str, object] = {"name": stem}
        names = node.dims
        if names and all(names):
            options["axis_labels"] = list(names)
        return [(_lazy(node), options, "image")]
    layers = [_layer(node, image, stem, "image") for image in images.read(node.attrs)]
    labels = node.get("labels")
    if isinstance(labels, Group):
        for name in images.read_labels(labels.attrs):
            member = labels.get(name)
            if isinstance(member, Group):
                layers += [_layer(member, image, name, "labels") for image in images.read(member.attrs)]
    return layers


def _lazy(array: Array) -> da.Array:
    import tessarr.dask

    return tessarr.dask.from_array(array, "chunks")


def _layer(group: Group, image: images.Image, stem: str, kind: Kind) -> LayerData:
    """Make one layer; of an image with channels, the arguments of several."""
    levels = [cast("Array", group[level.path]) for level in image.levels]
    channel = (
        next((at for at, axis in enumerate(image.axes) if axis.type == "channel"), None) if kind == "image" else None
    )
    kept = [at for at in range(levels[0].ndim) if at != channel]
    options: dict[str, object] = {"name": image.name or stem, "metadata": {"version": image.version}}
    if image.axes:
        options["axis_labels"] = [image.axes[at].name for at in kept]
        options["units"] = [image.axes[at].unit or "pixel" for at in kept]
    first = image.levels[0]
    if first.scale is not None:
        options["scale"] = [first.scale[at] for at in kept]
    if first.translation is not None:
        options["translate"] = [first.translation[at] for at in kept]
    if channel is not None:
        options |= {"channel_axis": channel} | _channels(image, levels[0].shape[channel])
    data = [_lazy(level) for level in levels]
    return (data if len(data) > 1 else data[0], options, kind)


def _channels(image: images.Image, count: int) -> dict[str, object]:
    """Return names, colours, contrast limits and visibility of channels, where ``omero`` describes all of them."""
    described = (image.omero or {}).get("channels")
    if not isinstance(described, Sequence) or len(described) != count:
        return {}
    channels = [item if isinstance(item, Mapping) else {} for item in described]
    found: dict[str, object] = {"visible": [bool(channel.get("active", True)) for channel in channels]}
    if all(isinstance(channel.get("label"), str) for channel in channels):
        found["name"] = [channel["label"] for channel in channels]
    if all(isinstance(channel.get("color"), str) for channel in channels):
        found["colormap"] = ["#" + str(channel["color"]).removeprefix("#") for channel in channels]
    windows = [channel.get("window") for channel in channels]
    if all(isinstance(window, Mapping) and {"start", "end"} <= window.keys() for window in windows):
        found["contrast_limits"] = [
            [window["start"], window["end"]] for window in windows if isinstance(window, Mapping)
        ]
    return found

"""How an array is in a file: its layout, which many files share. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Self, cast

import numpy as np

from tessarr.common import strict_json
from tessarr.core.creation.array_config import DEFAULT
from tessarr.core.creation.metadata import new_array_metadata
from tessarr.core.stored.parse_cache import parse_document
from tessarr.metadata.array import ArrayMetadata
from tessarr.tools.files.scan import ScannedArray
from tessarr.tools.files.unpack import MEANING, numpy_type
from tessarr.tools.sources.base import UNSET, Box, SourceArray, StoredChunks
from tessarr.types import JSON, AnyArray, JSONObject, Shape


class Layout(NamedTuple):
    """How an array is in a file, as text, so that equal layouts are found."""

    document: str
    """Of a v3 array with these chunks, whose length along the joined axis is 0; "": only the format's package can read it."""
    why: str
    """Why the format's package reads it."""
    packed: str
    """The type of numbers, and the attributes that say how they are packed, as JSON; "": they are not numbers."""

    @property
    def is_packed(self) -> bool:
        """Whether the elements stand for other numbers."""
        return '"scale_factor"' in self.packed or '"add_offset"' in self.packed

    def to_json(self) -> JSONObject:
        """Return the layout as JSON."""
        return cast("JSONObject", self._asdict())

    @classmethod
    def from_json(cls, obj: Mapping[str, JSON]) -> Self:
        """Parse the result of `to_json`."""
        return cls(**{name: str(value) for name, value in obj.items()})

    def metadata(self, axis: int | None, length: int) -> ArrayMetadata:
        """Describe the array of a file that has this length along the joined axis."""
        found = parse_document(
            cast("JSONObject", strict_json.loads(self.document.encode(), key="document")), group=False
        )
        assert isinstance(found, ArrayMetadata)
        return found if axis is None else found.with_(shape=(*found.shape[:axis], length, *found.shape[axis + 1 :]))

    def source(self, path: str) -> SourceArray:
        """Describe the packed array, for `tessarr.tools.files.unpack`."""
        found = cast("dict[str, dict[str, list[str]]]", strict_json.loads(self.packed.encode(), key="packed"))
        numbers = {
            name: np.frombuffer(bytes.fromhex(text), dtype)[0] for name, (dtype, text) in found["numbers"].items()
        }
        attributes = cast("Mapping[str, object]", found["attributes"])
        return SourceArray(
            path=path, shape=(), dtype=np.dtype(str(found["dtype"])), read=_nothing, attributes=attributes,
            cf_fill=numbers.pop("_FillValue", None), packing=numbers,
        )  # fmt: skip


def _nothing(_: Box) -> AnyArray:
    raise AssertionError("a layout has no values")


Known = dict[object, Layout]


def layout_of(array: ScannedArray, axis: int | None, known: Known) -> Layout:
    """Return the layout of an array that is joined along an axis. `known`: those that were made before."""
    node, stored = array.node, array.stored
    shape = node.shape if axis is None else (*node.shape[:axis], 0, *node.shape[axis + 1 :])
    if isinstance(stored, StoredChunks):
        fill = fill_of(node, stored)
        key: tuple[object, ...] = (stored.chunks, repr(stored.codecs), repr(fill))
    else:
        fill, key = None, (stored,)
    key = (node.path, shape, repr(node.dtype), repr(node.packing), repr(node.cf_fill), repr(_meaning(node)), *key)
    found = known.get(key)
    if found is None:
        document = _document(node, shape, stored, fill) if isinstance(stored, StoredChunks) else ""
        why = "" if isinstance(stored, StoredChunks) else stored
        found = known[key] = Layout(document, why, _packed(node))
    return found


def fill_of(node: SourceArray, stored: StoredChunks) -> object:
    """Return what chunks that are not stored hold; without such chunks, the fill value that the file states."""
    absent = bool((stored.offsets < 0).any()) and stored.fill_value is not UNSET
    fill = stored.fill_value if absent or node.fill_value is UNSET else node.fill_value
    return DEFAULT if fill is UNSET else fill


def _document(node: SourceArray, shape: Shape, stored: StoredChunks, fill: object) -> str:
    metadata = new_array_metadata(
        shape=shape,
        dtype=node.dtype,
        chunks=stored.chunks,
        codecs=stored.codecs,
        fill_value=fill,
        dimension_names=node.dimension_names,
    )
    return strict_json.dumps(metadata.to_dict(), indent=None).decode()


def _meaning(node: SourceArray) -> dict[str, object]:
    return {name: node.attributes[name] for name in MEANING if name in node.attributes}


def _packed(node: SourceArray) -> str:
    """Describe the packing; numbers as bytes, because JSON knows one type of them."""
    dtype = numpy_type(node)
    if dtype is None or dtype.kind not in "iuf":
        return ""
    numbers = {name: np.asarray(value) for name, value in node.packing.items()}
    if node.cf_fill is not None:
        numbers["_FillValue"] = np.asarray(node.cf_fill)
    plain = {name: [value.dtype.str, value.tobytes().hex()] for name, value in numbers.items()}
    said = {"dtype": dtype.str, "numbers": plain, "attributes": _meaning(node)}
    return strict_json.dumps(said, indent=None).decode()

"""Answer requests for computed content: find the array, read the selection, encode it.

Each answer is one call in the sense of `tessarr.core.asynchronous.sans_io`: it opens arrays and decodes chunks, so that an
event loop runs it in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from itertools import islice
from math import prod
from typing import cast
from urllib.parse import parse_qs

import numpy as np

from tessarr.core.array import Array
from tessarr.core.asynchronous.sans_io import Call, run_steps
from tessarr.core.open import open_array
from tessarr.core.stored.parse_cache import parse_entry
from tessarr.core.stored.walk import NAMES, Entry, read_entries, read_entries_steps
from tessarr.errors import (
    ArrayIndexError,
    CodecError,
    MetadataValidationError,
    NodeNotFoundError,
    TessarrError,
    UnsupportedOperationError,
)
from tessarr.metadata.array import ArrayMetadata
from tessarr.serve.content import content_of
from tessarr.serve.dynamic import description, exports, query
from tessarr.serve.dynamic.decoded import decoded
from tessarr.serve.dynamic.labels import Coordinates
from tessarr.serve.dynamic.query import Asked, Pick
from tessarr.serve.dynamic.reading import read_values
from tessarr.serve.dynamic.refusal import Refusal, problem_text
from tessarr.serve.dynamic.statistics import statistics
from tessarr.serve.dynamic.stored_chunks import stored_chunks
from tessarr.serve.http.messages import Request, Response
from tessarr.serve.http.paths import Path
from tessarr.serve.served import Served
from tessarr.stores.path import prefix_of
from tessarr.stores.protocols import List
from tessarr.types import JSON, AnyArray, JSONObject

SUFFIXES = ("npy", "csv", "json", "png", "raw", "stats", "chunks")
"""What follows the path of an array and a dot."""
PAGE = 1000
"""Members of one description."""
_MAX_SIDE = 4096
_MAX_SAMPLE = 4096
_ARRAY_DOCUMENTS = ("zarr.json", ".zarray", ".zgroup", ".zattrs")


class _Slice:
    """One request for elements of an array."""

    def __init__(self, served: Served, array: Array, suffix: str, text: str) -> None:
        self.array = array
        self.suffix = suffix
        self.names = description.dimension_names(array._metadata)
        self.asked: Asked = query.parse(text, self.names)
        self.budget = served.budget
        self.coordinates = Coordinates(served.path, array, self.names, self.budget)
        sample = self.asked.options.get("sample")
        self.sample = None if sample is None else query.number(self.asked.options, "sample", 1, _MAX_SAMPLE)
        default = "0" if suffix == "raw" else "1"
        self.is_decoded = self.asked.options.get("decode", default) not in ("0", "false")

    def picks(self, *, ndim: int | None = None) -> list[Pick]:
        return query.picks_of(self.asked, self.array.shape, self.coordinates.find, ndim=ndim)

    def values(self, picks: list[Pick], sample: int | None = None) -> tuple[AnyArray, bool]:
        read = read_values(self.array, picks, self.budget, sample=self.sample or sample)
        return (decoded(self.array, read.data) if self.is_decoded else read.data), read.is_sample

    def content(self) -> tuple[bytes, str, Mapping[str, str]]:
        """Return the content, its media type, and further headers."""
        if self.suffix == "png":
            return self._picture()
        picks = self.picks()
        if self.suffix == "chunks":
            return exports.dumps(stored_chunks(self.array, picks)), exports.KINDS["json"], {}
        if self.suffix == "stats":
            return self._statistics(picks)
        values, is_sample = self.values(picks)
        headers = {
            "X-Shape": ",".join(map(str, values.shape)),
            "X-Dtype": exports.numpy_name(values.dtype),
            **({"X-Sample": "1"} if is_sample else {}),
        }
        if self.suffix == "raw":
            return exports.raw(values), exports.KINDS["raw"], headers
        if self.suffix == "npy":
            return exports.npy(values), exports.KINDS["npy"], headers
        ranges = [(axis, pick) for axis, pick in enumerate(picks) if isinstance(pick, range)]
        names = [self.names[axis] or f"dim_{axis}" for axis, _ in ranges]
        labels = [self._labels(axis, pick) for axis, pick in ranges]
        name = self.array.path.rpartition("/")[2] or "value"
        if self.suffix == "csv":
            return exports.csv_table(values, names, labels, name), exports.KINDS["csv"], headers
        coordinates: JSONObject = {
            names[at]: exports.document(labels[at])
            for at, (axis, _) in enumerate(ranges)
            if self.coordinates.array(axis) is not None
        }
        units = None if values.dtype.kind == "M" else self.array._metadata.attributes.get("units")
        text: JSONObject = {
            "name": name, "dtype": str(values.dtype), "units": units if isinstance(units, str) else None,
            "dims": list(names), "shape": list(values.shape), "coords": coordinates, "data": exports.document(values),
        }  # fmt: skip
        return exports.dumps(text), exports.KINDS["json"], headers

    def _labels(self, axis: int, pick: range) -> AnyArray:
        """Return the coordinates along an axis, or the indices."""
        found = self.coordinates.read(axis, pick)
        return np.asarray(pick, dtype=np.int64) if found is None else found

    def _picture(self) -> tuple[bytes, str, Mapping[str, str]]:
        picks = self.picks(ndim=2 + self._is_colour())
        side = query.number(self.asked.options, "size", 1024, _MAX_SIDE)
        planes = [
            pick[:: -(-len(pick) // side)] if isinstance(pick, range) and len(pick) > side else pick for pick in picks
        ]
        values, is_sample = self.values(planes, sample=_PICTURE_CHUNKS)
        headers = {"X-Sample": "1"} if is_sample else {}
        return exports.picture(values, self.asked.options), exports.KINDS["png"], headers

    def _is_colour(self) -> bool:
        """Whether the last axis are the parts of colours: red, green, blue, and perhaps opacity."""
        array = self.array
        return array.ndim >= 3 and array.dtype == np.uint8 and array.shape[-1] in (3, 4)

    def _statistics(self, picks: list[Pick]) -> tuple[bytes, str, Mapping[str, str]]:
        bins = query.number(self.asked.options, "bins", 64, 4096)
        ranges = [pick for pick in picks if isinstance(pick, range)]
        step = 1
        while prod(-(-len(pick) // step) for pick in ranges) > _STATISTICS_SIZE:
            step *= 2
        chosen: list[Pick] = [pick[::step] if isinstance(pick, range) else pick for pick in picks]
        values, is_sample = self.values(chosen, sample=_PICTURE_CHUNKS)
        result = statistics(values, bins)
        return exports.dumps({**result, "is_sample": is_sample or step > 1}), exports.KINDS["json"], {}


_PICTURE_CHUNKS = 256
"""Chunks from which a picture, and statistics, are made, unless the request says ``sample``."""
_STATISTICS_SIZE = 1 << 22
"""Elements from which statistics are computed."""


async def slice_steps(served: Served, path: Path, request: Request) -> Response | None:
    """Answer a request for elements of an array; ``None``: the path has no such suffix, or there is no such array."""
    if not path.segments or path.is_directory:
        return None
    name, dot, suffix = path.segments[-1].rpartition(".")
    segments = (*path.segments[:-1], name) if name else path.segments[:-1]
    if not dot or suffix not in SUFFIXES or (not name and segments) or served.is_private([*segments, "zarr.json"]):
        return None
    return await _in_thread(partial(_slice, served, "/".join(segments), suffix, request))


async def description_steps(served: Served, path: Path, request: Request) -> Response | None:
    """Answer a request for the description of a node and its members; ``None``: there is no such node."""
    if served.is_private([*path.segments, "zarr.json"]):
        return None
    return await _in_thread(partial(_description, served, path, request))


async def _in_thread(answer: Callable[[], Response | None]) -> Response | None:
    """Compute an answer as one call, which an event loop makes in a thread."""

    async def awaited() -> Response | None:
        raise NotImplementedError("a call that does not wait is made in a thread")

    return cast("Response | None", await Call(partial(_refused, answer), awaited, waits=False))


def _refused(answer: Callable[[], Response | None]) -> Response | None:
    try:
        return answer()
    except Refusal as refusal:
        return refusal.response()
    except CodecError as error:
        return Refusal(500, error.kind, "a chunk cannot be decoded", "tessarr check PLACE --data says which").response()
    except MetadataValidationError as error:
        text = f"the metadata are invalid: {problem_text(error)}"
        return Refusal(500, error.kind, text, "tessarr check PLACE lists what is wrong").response()
    except ArrayIndexError as error:
        return Refusal(400, error.kind, error.what).response()
    except MemoryError:
        return Refusal(503, "memory", "there is not enough memory for this slice", "Select less").response()


def _slice(served: Served, relative: str, suffix: str, request: Request) -> Response | None:
    try:
        array = open_array(served.store, path=served.key(relative), mode="r")
    except NodeNotFoundError:
        found = _beside(served, relative)
        if found is None:
            return None
        array = found
    data, kind, more = _Slice(served, array, suffix, request.query).content()
    response = content_of(data, kind, request, served.boundary)
    return Response(
        status=response.status,
        headers=(*response.headers, *more.items()),
        windows=response.windows,
        nbytes=response.nbytes,
    )


def _beside(served: Served, name: str) -> Array | None:
    """Return the coordinates along a dimension of the array that is served alone, which URLs below it name like the dimension.

    ``None``: what is served is a group, or there are no such coordinates.
    """
    try:
        array = open_array(served.store, path=served.path, mode="r")
    except (NodeNotFoundError, ValueError):
        return None
    names = description.dimension_names(array._metadata)
    if name not in names:
        return None
    return Coordinates(served.path, array, names, served.budget).array(names.index(name))


# -- descriptions ------------------------------------------------------------------------------------------------------------


def _description(served: Served, path: Path, request: Request) -> Response | None:
    entry = read_entries(served.store, [served.key(path.key)], NAMES)[0]
    if entry.kind is None:
        return None
    asked = parse_qs(request.query, keep_blank_values=True, max_num_fields=10, errors="replace")
    found: JSONObject = {"name": path.segments[-1] if path.segments else "", "path": path.key}
    found["documents"] = description.texts(entry.values)
    try:
        if entry.kind == "array":
            array = open_array(served.store, path=served.key(path.key), mode="r")
            found |= description.of_array(array, description.dimension_names(array._metadata))
            found |= _surroundings(served, array)
        else:
            found |= {"kind": "group", "zarr_format": entry.formats[0], **_attributes(entry)}
            found |= _members(served, path, asked.get("after", [""])[0])
    except (TessarrError, ValueError) as error:
        found |= {"kind": entry.kind, "problem": problem_text(error)}
    if "check" in asked:
        found["findings"] = _findings(served, path)
    return content_of(exports.dumps(found), "application/json", request, served.boundary)


def _findings(served: Served, path: Path) -> JSON:
    found = description.findings(served.store, served.key(path.key))
    for one in cast("list[dict[str, JSON]]", found or []):
        one["path"] = served.relative(str(one["path"]))
    return found


def _attributes(entry: Entry) -> JSONObject:
    metadata = parse_entry(entry, entry.formats[0])
    attributes = dict(metadata.attributes)
    return {"attributes": strict(attributes), "pyramids": description.pyramids(attributes)}


def _surroundings(served: Served, array: Array) -> JSONObject:
    """Describe what is around an array: its coordinates, attributes, and the pyramid that it is a level of."""
    names = description.dimension_names(array._metadata)
    coordinates = Coordinates(served.path, array, names, served.budget)
    found: list[JSON] = []
    for axis in range(array.ndim):
        one = coordinates.array(axis)
        if one is None or one is array or array.path != served.path:
            found.append(None if one is None else served.relative(one.path))
        else:
            found.append(names[axis])  # see _beside
    result: JSONObject = {"coordinates": found, "attributes": strict(dict(array._metadata.attributes))}
    group, _, own = array.path.rpartition("/")
    if array.path != served.path:
        above = read_entries(served.store, [group], _ARRAY_DOCUMENTS)[0]
        if above.kind == "group":
            for pyramid in cast("list[dict[str, JSON]]", _attributes(above)["pyramids"]):
                if own in cast("list[str]", pyramid["paths"]):
                    result["pyramid"] = {**pyramid, "group": served.relative(group)}
                    break
    return result


def _members(served: Served, path: Path, after: str) -> JSONObject:
    """Describe the members of a group, by name, at most `PAGE` of them."""
    if not isinstance(served.store, List):
        return {"members": [], "next": None, "problem": "this store cannot list its keys"}
    prefix = prefix_of(served.key(path.key))
    try:
        listing = served.store.list_dir(prefix)
    except UnsupportedOperationError:
        return {"members": [], "next": None, "problem": "this store cannot list its keys"}
    names = sorted(name for listed in listing.prefixes if (name := listed[len(prefix) : -1]) > after)
    left = (name for name in names if not served.is_private([*path.segments, name, "zarr.json"]))
    page = list(islice(left, PAGE))
    paths = [prefix + name for name in page]
    entries = run_steps(read_entries_steps(served.store, paths, _ARRAY_DOCUMENTS, v1=False))
    members: list[JSON] = []
    for name, entry in zip(page, entries, strict=True):
        if entry.kind is None:
            continue
        member: JSONObject = {"name": name, "kind": entry.kind}
        if entry.kind == "array":
            try:
                metadata = parse_entry(entry, entry.formats[0])
                if isinstance(metadata, ArrayMetadata):
                    member |= description.brief(metadata)
            except (TessarrError, ValueError) as error:
                member["problem"] = problem_text(error)
        members.append(member)
    return {"members": members, "next": None if next(left, None) is None else page[-1]}


def strict(value: JSON) -> JSON:
    """Replace NaN and infinity, which documents may hold, so that the answer is strict JSON."""
    if isinstance(value, dict):
        return {name: strict(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [strict(item) for item in value]
    return exports.json_of(value) if isinstance(value, float) else value

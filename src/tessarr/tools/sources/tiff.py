"""Read TIFF and related formats (BigTIFF, OME-TIFF, ImageJ, GeoTIFF) with tifffile: one array per series and pyramid
level.

A file with one series is one array; several, or a pyramid, become a group with arrays ``0``, ``1``, … (levels ``0/1`` …).
Strips and tiles are decoded one by one, so that a page need not fit into memory.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tessarr.errors import StoreError
from tessarr.tools.sources.attributes import collect
from tessarr.tools.sources.base import Box, SourceArray, SourceGroup, StoredChunks, bytes_codec, contiguous, missing
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import AnyArray, JSONObject

if TYPE_CHECKING:
    import tifffile

_AXES = {"X": "x", "Y": "y", "Z": "z", "C": "c", "T": "t", "S": "sample", "I": "page", "Q": None}
# Tags that describe the layout of the file, or repeat the array's metadata.
_LAYOUT = frozenset({
    "StripOffsets", "StripByteCounts", "TileOffsets", "TileByteCounts", "ImageWidth", "ImageLength", "TileWidth",
    "TileLength", "RowsPerStrip", "BitsPerSample", "SamplesPerPixel", "SampleFormat", "PlanarConfiguration",
    "Compression", "Predictor", "FillOrder", "NewSubfileType", "SubfileType", "JPEGTables", "ReferenceBlackWhite",
    "YCbCrSubSampling", "YCbCrPositioning", "SubIFDs", "ExifTag", "GPSTag", "IJMetadata", "IJMetadataByteCounts",
    "Orientation", "PageNumber",
})  # fmt: skip


_CODECS: dict[int, tuple[JSONObject, ...]] = {
    1: (),
    5: ({"name": "lzw"},),
    8: ({"name": "numcodecs.zlib", "configuration": {}},),
    32946: ({"name": "numcodecs.zlib", "configuration": {}},),
    50000: ({"name": "numcodecs.zstd", "configuration": {}},),
}
"""Codecs by TIFF compression number."""
_JPEG = frozenset({6, 7, 34892, 33007})
"""Compression numbers of JPEG, whose tables and header may be stored once for all tiles of a page."""
_PAGE_ERRORS = ("invalid page offset", "invalid offset to page", "corrupted tag list")


class TIFFSource:
    """Read an opened TIFF file."""

    kind = "tiff"
    parallel = False  # pages share one file handle

    def __init__(self, place: str | RemoteFile) -> None:
        try:
            import tifffile
        except ImportError as error:
            raise missing("tifffile", "TIFF") from error
        with _page_errors() as errors:
            self._file = (
                # other files of a series would be looked for in the working directory
                tifffile.TiffFile(BufferedReader(place), name=place.name, _multifile=False)
                if isinstance(place, RemoteFile)
                else tifffile.TiffFile(place)
            )
            series = list(self._file.series)
            if not logging.getLogger("tifffile").isEnabledFor(logging.ERROR):  # then no error was reported
                errors += _broken_chain(self._file)
        if errors:
            self._file.close()
            raise StoreError(
                "the chain of pages is damaged, or the file is cut off",
                store=getattr(place, "name", place),
                got=errors[0],
            )
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []
        if len(series) == 1 and len(series[0].levels) == 1:
            self._array(series[0], "")
        else:
            self.nodes.append(SourceGroup(path=""))
            for number, one in enumerate(series):
                if len(one.levels) == 1:
                    self._array(one, str(number))
                    continue
                self.nodes.append(SourceGroup(path=str(number)))
                for level, reduced in enumerate(one.levels):
                    self._array(reduced, f"{number}/{level}")

    def _array(self, series: Any, path: str) -> None:
        page = series.keyframe
        if series.dtype is None or not series.shape:
            self.unsupported.append((path, "tifffile cannot say what its pixels are"))
            return
        absent = sum(one is None for one in series.pages) if series.kind == "ome" else 0
        if absent:  # they are in files that are not there, or were never written
            self.notices.append(
                f"/{path}: {absent} of {len(series.pages)} pages are missing, and hold the value {page.nodata}"
            )
        attributes = collect(self._attributes(page), f"/{path}", self.notices)
        self.nodes.append(
            SourceArray(
                path=path,
                shape=tuple(int(n) for n in series.shape),
                dtype=np.dtype(series.dtype).newbyteorder("="),
                read=_reader(series),
                chunks=tuple(int(n) for n in (*series.shape[: len(series.shape) - len(page.shape)], *page.chunks))
                if page.is_tiled and len(page.chunks) == len(page.shape)
                else None,
                attributes=attributes,
                dimension_names=_dimensions(series.axes),
                stored=partial(_stored, series),
            )
        )

    def _attributes(self, page: Any) -> list[tuple[str, Any]]:
        values: list[tuple[str, object]] = []
        for tag in page.tags:
            if tag.name in _LAYOUT or tag.name.isdigit():
                continue
            value = tag.value
            if tag.name == "ColorMap":
                value = np.asarray(value)
            values.append((tag.name, getattr(value, "name", value)))
        if self._file.is_imagej and self._file.imagej_metadata:
            values.append(("ImageJ", self._file.imagej_metadata))
        if page.is_geotiff and page.geotiff_tags:
            values.append(("GeoTIFF", {name: getattr(v, "name", v) for name, v in page.geotiff_tags.items()}))
        return values

    def close(self) -> None:
        """Close the file."""
        self._file.close()


@contextmanager
def _page_errors() -> Iterator[list[str]]:
    """Collect what tifffile logs, and no more, where it cannot find the next page: it goes on with those before."""
    errors: list[str] = []
    thread = threading.get_ident()

    class Collecting(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            text = record.getMessage()
            if record.thread == thread and any(part in text for part in _PAGE_ERRORS):
                errors.append(text)

    handler = Collecting(logging.ERROR)
    logger = logging.getLogger("tifffile")
    logger.addHandler(handler)
    try:
        yield errors
    finally:
        logger.removeHandler(handler)


def _broken_chain(file: tifffile.TiffFile) -> list[str]:
    """Return what is wrong with the chain of pages, by following it: each has the offset of the next one at its end."""
    data, is_big = file.filehandle, file.is_bigtiff
    if file.is_ndpi or (not is_big and data.size >= 1 << 32):
        return []  # their offsets have 64 bits where the format has 32
    order: Literal["little", "big"] = "little" if file.byteorder == "<" else "big"
    counts, entry, nbytes = (8, 20, 8) if is_big else (2, 12, 4)
    at, seen = nbytes, set[int]()
    while True:
        data.seek(at)
        number = data.read(nbytes)
        offset = int.from_bytes(number, order)
        if len(number) == nbytes and not offset:
            return []
        data.seek(offset)
        count = data.read(counts)
        if len(number) < nbytes or len(count) < counts or offset in seen:
            return [f"invalid page offset {offset} at byte {at}"]
        seen.add(offset)
        at = offset + counts + int.from_bytes(count, order) * entry


def _dimensions(axes: str) -> tuple[str | None, ...] | None:
    names = tuple(_AXES.get(axis, axis.lower()) for axis in axes)
    named = [name for name in names if name]
    return names if named and len(set(named)) == len(named) else None


def _reader(series: Any) -> Callable[[Box], AnyArray]:
    """Make a function that reads a box of a series: the pages that it overlaps, and their strips or tiles."""
    page_shape = tuple(series.keyframe.shape)
    leading = series.shape[: len(series.shape) - len(page_shape)]
    if prod(leading) != len(series.pages):  # one page holds all others as contiguous bytes
        return lambda box: np.asarray(series.asarray())[box]

    def read(box: Box) -> AnyArray:
        outer, inner = box[: len(leading)], box[len(leading) :]
        out = np.empty([part.stop - part.start for part in box], dtype=np.dtype(series.dtype).newbyteorder("="))
        for place in product(*(range(part.start, part.stop) for part in outer)):
            number = int(np.ravel_multi_index(place, leading)) if leading else 0
            page = series.pages[number]
            at = tuple(i - part.start for i, part in zip(place, outer, strict=True))
            if page is None:
                out[at] = series.keyframe.nodata
            else:
                with _file_of(page):
                    _read_page(page, inner, out[at] if at else out)
        return out

    return read


@contextmanager
def _file_of(page: Any) -> Iterator[None]:
    """Open the file of a page, which tifffile closes where it is another one than that of the series."""
    handle = page.parent.filehandle
    was_closed = handle.closed
    if was_closed:
        handle.open()
    try:
        yield
    finally:
        if was_closed:
            handle.close()


def _read_page(page: Any, box: Box, out: AnyArray) -> None:
    """Fill `out` with `box` of one page."""
    keyframe = page.keyframe
    # (separate samples, depth, length, width, interleaved samples): the shape that tifffile decodes into.
    shaped = tuple(keyframe.shaped)
    wide: list[slice] = []
    parts = iter(box)
    rest = list(keyframe.shape)
    for length in shaped:
        if rest and length == rest[0]:
            rest.pop(0)
            wide.append(next(parts))
        elif length == 1:
            wide.append(slice(0, 1))
        else:
            out[...] = page.asarray()[box]
            return
    if rest:
        out[...] = page.asarray()[box]
        return
    full = out.reshape([part.stop - part.start for part in wide])
    full[...] = keyframe.nodata
    handle, decode = page.parent.filehandle, keyframe.decode  # which reads tags when it is made
    shared = {"jpegtables": page.jpegtables, "jpegheader": keyframe.jpegheader} if keyframe.compression in _JPEG else {}
    for index, (offset, nbytes) in enumerate(zip(page.dataoffsets, page.databytecounts, strict=True)):
        position, size = _segment(keyframe, index)
        if nbytes and all(
            start < part.stop and start + length > part.start
            for start, length, part in zip(position, size, wide, strict=True)
        ):
            handle.seek(offset)
            segment, _, shape = decode(handle.read(nbytes), index, **shared)
            if segment is not None:
                _place(segment, position, shape, wide, full)


def _segment(keyframe: Any, index: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the position of a strip or tile in the page of five dimensions, and its shape there."""
    separate, depth, length, width, samples = keyframe.shaped
    if keyframe.is_tiled:
        sizes = (keyframe.tiledepth, keyframe.tilelength, keyframe.tilewidth)
    else:
        sizes = (1, keyframe.rowsperstrip or length, width)
        sizes = (1, min(sizes[1], length), width)
    counts = (separate, *(-(-n // size) for n, size in zip((depth, length, width), sizes, strict=True)))
    s, d, h, w = (int(i) for i in np.unravel_index(index, counts))
    return (s, d * sizes[0], h * sizes[1], w * sizes[2], 0), (1, *sizes, samples)


def _place(segment: Any, position: Any, shape: Any, wide: list[slice], full: AnyArray) -> None:
    """Copy the part of a decoded segment, of shape (depth, length, width, samples), that lies in the box."""
    source: list[slice] = []
    target: list[slice] = []
    for start, size, part in zip(position, (1, *shape), wide, strict=True):
        low, high = max(start, part.start), min(start + size, part.stop)
        source.append(slice(low - start, high - start))
        target.append(slice(low - part.start, high - part.start))
    full[tuple(target)] = segment[np.newaxis][tuple(source)]


def _stored(series: Any) -> StoredChunks | str:
    """Return where the strips or tiles of a series are, or why Zarr cannot decode them."""
    page, shape = series.keyframe, tuple(int(n) for n in series.shape)
    dtype = np.dtype(series.dtype).newbyteorder(page.parent.byteorder)
    if any(one is not None and one.parent is not page.parent for one in series.pages):
        return "its pages are in several files"
    codecs = _CODECS.get(int(page.compression))
    if codecs is None or page.jpegtables is not None:
        return f"Zarr has no codec for the compression {page.compression.name}"
    if page.predictor != 1:
        return f"Zarr has no codec for the predictor {page.predictor.name}"
    if dtype.kind not in "uifc" or page.bitspersample != dtype.itemsize * 8 or page.fillorder != 1:
        return "samples are not whole numbers of bytes"
    if not codecs and series.dataoffset is not None:
        return contiguous(shape, dtype, int(series.dataoffset))
    leading = shape[: len(shape) - len(page.shape)]
    counts = tuple(int(n) for n in page.chunked)
    chunks = (1,) * (len(counts) - len(page.chunks)) + tuple(int(n) for n in page.chunks)  # samples may be apart
    grid = tuple(-(-n // max(1, chunk)) for n, chunk in zip(page.shape, chunks, strict=False))
    if prod(leading) != len(series.pages) or len(chunks) != len(page.shape) or grid != counts:
        return "its pages have strips or tiles that do not divide the array"
    if not page.is_tiled and any(n % chunk for n, chunk in zip(page.shape, chunks, strict=True)):
        return "the last strip of a page is shorter than the others"
    offsets, nbytes = (
        np.full((len(series.pages), prod(grid)), -1, np.int64),
        np.zeros((len(series.pages), prod(grid)), np.int64),
    )
    for number, one in enumerate(series.pages):
        if one is None:
            continue
        sizes = np.array(one.databytecounts, np.int64)
        if sizes.shape != nbytes[number].shape:
            return "its pages have different numbers of strips or tiles"
        offsets[number], nbytes[number] = np.where(sizes > 0, np.array(one.dataoffsets, np.int64), -1), sizes
    return StoredChunks(
        chunks=(*(1 for _ in leading), *chunks), codecs=(bytes_codec(dtype), *codecs),
        offsets=offsets.reshape(*leading, *grid), nbytes=nbytes.reshape(*leading, *grid), fill_value=page.nodata,
    )  # fmt: skip


def open_source(place: str | RemoteFile) -> TIFFSource:
    """Open a TIFF file."""
    return TIFFSource(place)

"""Read the images of FITS files with astropy: one image is one array, several become a group with their names or numbers.

Values are read as stored: ``BSCALE`` and ``BZERO`` become the CF attributes ``scale_factor`` and ``add_offset``, ``BLANK``
becomes ``_FillValue``. Tables are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import BinaryIO, Protocol, cast

import numpy as np

from tessarr.errors import StoreError
from tessarr.tools.sources.attributes import collect
from tessarr.tools.sources.base import UNSET, Box, SourceArray, SourceGroup, StoredChunks, contiguous, missing
from tessarr.tools.sources.remote_file import RemoteFile
from tessarr.types import AnyArray, AnyDType, Shape

_LAYOUT = frozenset(
    {"SIMPLE", "XTENSION", "BITPIX", "NAXIS", "EXTEND", "PCOUNT", "GCOUNT", "BSCALE", "BZERO", "BLANK", ""}
)
_TEXT = frozenset({"COMMENT", "HISTORY"})
_DTYPES: dict[str, AnyDType] = {
    bits: np.dtype(name)
    for bits, name in (("8", "u1"), ("16", ">i2"), ("32", ">i4"), ("64", ">i8"), ("-32", ">f4"), ("-64", ">f8"))
}
"""Types of elements by ``BITPIX``."""


class _Header(Protocol):
    cards: Sequence[_Card]

    def __getitem__(self, keyword: str) -> object: ...
    def __contains__(self, keyword: str) -> bool: ...


class _Card(Protocol):
    keyword: str
    value: object


class _Image(Protocol):
    """An image of astropy."""

    header: _Header
    name: str
    shape: Shape
    data: AnyArray

    def fileinfo(self) -> Mapping[str, object]: ...


class FITSSource:
    """Read an opened FITS file."""

    kind = "fits"
    parallel = False  # the images share one file handle

    def __init__(self, place: str | RemoteFile) -> None:
        try:
            fits = import_module("astropy.io.fits")
        except ImportError as error:
            raise missing("astropy", "FITS", "fits") from error
        self._file = fits.open(place, mode="readonly", do_not_scale_image_data=True, ignore_blank=True)
        self.notices: list[str] = []
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []
        images: list[tuple[int, _Image]] = []
        units = [*self._file]
        if behind := _behind(units[-1], str(place)):
            self.notices.append(f"what follows the last extension is left out: {behind[:40]!r}…")
        for number, unit in enumerate(units):
            if not unit.is_image:
                self.notices.append(f"extension {number} ({unit.name or 'without a name'}) is a table; left out")
            elif unit.header["NAXIS"]:
                images.append((number, unit))
        if len(images) != 1:
            self.nodes.append(SourceGroup(path=""))
        names: set[str] = set()
        for number, unit in images:
            name = unit.name.lower().replace("/", "_") or str(number)
            name = f"{name}_{number}" if name in names else name
            names.add(name)
            self._image(unit, "" if len(images) == 1 else name)

    def _image(self, unit: _Image, path: str) -> None:
        header = unit.header
        values = [(card.keyword, card.value) for card in header.cards if not _is_layout(card.keyword)]
        values += [(name, str(header[name])) for name in sorted(_TEXT) if name in header]
        if "BUNIT" in header:
            values.append(("units", header["BUNIT"]))
        packing: dict[str, np.generic] = {
            name: np.float64(str(header[keyword]))
            for name, keyword, plain in (("scale_factor", "BSCALE", 1), ("add_offset", "BZERO", 0))
            if keyword in header and header[keyword] != plain
        }
        dtype = _DTYPES[str(header["BITPIX"])]
        fill = None
        if "BLANK" in header and dtype.kind in "iu":
            fill = dtype.newbyteorder("=").type(str(header["BLANK"]))
        self.nodes.append(
            SourceArray(
                path=path,
                shape=tuple(int(n) for n in unit.shape),
                dtype=dtype.newbyteorder("="),
                read=partial(_read, unit),
                fill_value=UNSET if fill is None else fill,
                attributes=collect([*values, *packing.items()], f"/{path}", self.notices),
                cf_fill=fill,
                packing=packing,
                stored=partial(_stored, unit, dtype),
            )
        )

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _behind(unit: _Image, place: str) -> bytes:
    """Return what follows the last unit that astropy found, without what fills a block.

    Raises `StoreError` where the file ends before its last block, or has the beginning of another unit there: astropy leaves
    such a unit out.
    """
    found = unit.fileinfo()
    file, end = cast("BinaryIO", found["file"]), int(str(found["datLoc"])) + int(str(found["datSpan"]))
    with warnings.catch_warnings(action="ignore"):
        file.seek(max(0, end - _BLOCK))
        last = file.read(_BLOCK)
        file.seek(end)
        behind = bytes(file.read(_BLOCK)) if len(last) == _BLOCK else b""
    if not last or behind.startswith(b"XTENSION"):
        raise StoreError(
            "a FITS file is damaged or cut off",
            store=place,
            expected="the header and data of each extension",
            got=f"the end of the file, or an extension that cannot be read, behind byte {end - _BLOCK if not last else end}",
            hint="Fetch the file again",
        )
    return behind.strip(b"\0 ")


_BLOCK = 2880


def _is_layout(keyword: str) -> bool:
    return keyword in _LAYOUT or keyword in _TEXT or (keyword.startswith("NAXIS") and keyword[5:].isdigit())


def _read(unit: _Image, box: Box) -> AnyArray:
    values = np.asarray(unit.data[box])
    return values.astype(values.dtype.newbyteorder("="), copy=False)


def _stored(unit: _Image, dtype: AnyDType) -> StoredChunks | str:
    if type(unit).__name__.startswith("Comp"):
        return "the image is compressed in a table"
    found = unit.fileinfo()
    if getattr(found["file"], "compression", None) is not None:
        return "the file is compressed as a whole"
    return contiguous(tuple(int(n) for n in unit.shape), dtype, int(str(found["datLoc"])))


def open_source(place: str | RemoteFile) -> FITSSource:
    """Open a FITS file."""
    return FITSSource(place)

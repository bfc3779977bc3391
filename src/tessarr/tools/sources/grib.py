"""Read GRIB editions 1 and 2 with cfgrib and xarray: messages become arrays over time, step, level and a grid.

Messages that form no single hypercube become several groups, named after their kind of level. cfgrib decodes messages, so
that values are floats, and NaN where they are missing.
"""

from __future__ import annotations

import logging
import os
import threading
from functools import lru_cache, partial
from importlib import import_module
from mmap import ACCESS_READ, mmap
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import numpy as np

from tessarr.errors import StoreError
from tessarr.tools.sources.attributes import collect
from tessarr.tools.sources.base import Box, SourceArray, SourceGroup, StoredChunks, missing
from tessarr.types import AnyArray

if TYPE_CHECKING:
    import xarray


_LIBRARY = threading.RLock()
"""Held while the library is called, which not every build of it allows several threads to do at the same time."""


class GRIBSource:
    """Read an opened GRIB file. Raises `StoreError` for one of which a message is damaged or cut off."""

    kind = "grib"
    parallel = False  # of `_LIBRARY`

    def __init__(self, place: str) -> None:
        state = os.stat(place)
        with _LIBRARY:
            self._sets, repeated = _open(place, (state.st_mtime_ns, state.st_size))
        self.notices: list[str] = []
        if repeated:
            self.notices.append(f"fields with the keys of one before are left out: {repeated}")
        self.unsupported: list[tuple[str, str]] = []
        self.nodes: list[SourceArray | SourceGroup] = []
        if len(self._sets) != 1:
            self.nodes.append(SourceGroup(path=""))
        names: set[str] = set()
        for number, dataset in enumerate(self._sets):
            levels = {str(one.attrs.get("GRIB_typeOfLevel", number)) for one in dataset.data_vars.values()}
            name = levels.pop() if len(levels) == 1 else str(number)
            name = f"{name}_{number}" if name in names else name
            names.add(name)
            self._set(dataset, "" if len(self._sets) == 1 else name)

    def _set(self, dataset: xarray.Dataset, path: str) -> None:
        self.nodes.append(SourceGroup(path=path, attributes=collect(dataset.attrs.items(), f"/{path}", self.notices)))
        coordinates = " ".join(str(name) for name in dataset.coords if name not in dataset.dims)
        for name, variable in dataset.variables.items():
            below = f"{path}/{name}".lstrip("/")
            attributes = collect(variable.attrs.items(), f"/{below}", self.notices)
            if name in dataset.data_vars and coordinates:
                attributes["coordinates"] = coordinates
            fields = variable.ndim - 2
            self.nodes.append(
                SourceArray(
                    path=below,
                    shape=tuple(int(n) for n in variable.shape),
                    dtype=np.dtype(variable.dtype).newbyteorder("="),
                    read=partial(_read, variable),
                    chunks=(*(1,) * fields, *variable.shape[fields:])
                    if name in dataset.data_vars and fields >= 0
                    else None,
                    fill_value=np.nan if variable.dtype.kind == "f" else 0,
                    attributes=attributes,
                    dimension_names=tuple(map(str, variable.dims)),
                    stored=_why_not,
                )
            )

    def close(self) -> None:
        """Release the datasets, which keep no file open."""
        self._sets = ()


@lru_cache(maxsize=4)
def _open(place: str, _state: tuple[int, int]) -> tuple[tuple[xarray.Dataset, ...], int]:
    """Return what cfgrib finds in a file, and how many fields have the keys of one before.

    A file is scanned once while its time and size are the same; cfgrib opens it again for each field that is read.
    """
    try:
        cfgrib = import_module("cfgrib")
    except (ImportError, RuntimeError) as error:  # eccodes' library may be missing
        raise missing("cfgrib", "GRIB", "grib") from error
    starts = message_starts(place)
    log = logging.getLogger("cfgrib.messages")
    with TemporaryDirectory(prefix="tessarr-grib-") as folder:
        # An index as a file, because the messages would be scanned again for each parameter without one.
        options = {"indexpath": os.path.join(folder, "{short_hash}"), "errors": "raise"}
        # An error that is raised would be logged too, as one that keeps the index from being written.
        before, log.disabled = log.disabled, True
        try:
            stream = cfgrib.FileStream(place, errors="raise")
            index = cfgrib.dataset.open_fileindex(stream, indexpath=options["indexpath"])
        finally:
            log.disabled = before
        datasets = cfgrib.open_datasets(
            place, backend_kwargs=options, decode_times=False, decode_timedelta=False, cache=False
        )
    fields = [ids for _, ids in index.field_ids_index]
    found = {one[0] if isinstance(one, tuple) else one for ids in fields for one in ids}
    if lost := sorted({*starts} - found):
        raise StoreError(
            "messages of a GRIB file cannot be read",
            store=place,
            expected=f"{len(starts)} messages",
            got=f"{len(starts) - len(lost)}, without that at byte {lost[0]}",
            hint="The file is damaged; fetch it again",
        )
    return tuple(datasets), sum(len(ids) - 1 for ids in fields)


def message_starts(place: str) -> list[int]:
    """Return where the messages of a file begin, by their lengths, which are those of the file whatever they hold.

    Raises `StoreError` for one that is cut off, or whose beginning or end is not that of a message.

    Source: WMO-No. 306, volume I.2, FM 92 GRIB (editions 1 and 2, section 0).
    """
    starts: list[int] = []
    with open(place, "rb") as file, mmap(file.fileno(), 0, access=ACCESS_READ) as data:
        done = 0
        while True:
            start = data.find(_BEGIN, done)
            if data[done : start if start >= 0 else len(data)].rstrip(b"\0").endswith(_END):
                raise _damaged(place, done, f"{_BEGIN.decode()} at the beginning of a message", data[done : done + 4])
            if start < 0:
                return starts
            length = _length(data, start)
            if length is None:  # in a text between messages
                done = start + len(_BEGIN)
                continue
            done = start + length
            if length < _SHORTEST or data[done - len(_END) : done] != _END:
                raise _damaged(place, start, f"{_END.decode()} at byte {done - len(_END)}", data[done - 4 : done])
            starts.append(start)


_BEGIN, _END = b"GRIB", b"7777"
_SHORTEST = 12
"""Bytes of sections 0 and 8 of edition 1."""


def _length(data: mmap, start: int) -> int | None:
    """Return the length of the message that begins at `start`; ``None``: no message begins there."""

    def number(at: int, nbytes: int = 3) -> int:
        return int.from_bytes(data[start + at : start + at + nbytes], "big")

    match number(7, 1):
        case 1:
            length = number(4)
            if length < 1 << 23:
                return length
            # By a convention of ECMWF, for more than 8 MiB: multiples of 120, of which the length of section 4 says the rest.
            flags, at = number(8 + 7, 1), 8 + number(8)
            for has_section in (flags & 0x80, flags & 0x40):
                at += number(at) if has_section else 0
            rest = number(at)
            return (length & 0x7FFFFF) * 120 - rest + 4 if rest < 120 else length
        case 2:
            return number(8, 8)
    return None


def _damaged(place: str, at: int, expected: str, got: bytes) -> StoreError:
    return StoreError(
        f"a message of a GRIB file is damaged or cut off, at byte {at}",
        store=place,
        expected=expected,
        got=repr(got) if got else "the end of the file",
        hint="Fetch the file again",
    )


def _read(variable: xarray.Variable, box: Box) -> AnyArray:
    with _LIBRARY:
        return np.asarray(variable[box].values, variable.dtype)


def _why_not() -> StoredChunks | str:
    return "Zarr has no codec for GRIB messages"


def open_source(place: str) -> GRIBSource:
    """Open a GRIB file."""
    return GRIBSource(place)

"""Random programs on one array, beside a NumPy array that does the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

import tessarr
from tests.stateful.places import OF_NODES, formats, make_store, reopened
from tests.stateful.selections import outer, points, selection

DTYPES = ["bool", "i1", "<i2", ">i4", "<u8", "<f4", ">f8", "<f2", "<c8", "S3", "<U2", "<M8[s]"]
COMPRESSORS: list[Any] = [
    None,
    {"name": "zstd", "configuration": {"level": 1, "checksum": False}},
    {"name": "gzip", "configuration": {"level": 1}},
    {"name": "crc32c"},
    {
        "name": "blosc",
        "configuration": {"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0},
    },
]
OLD_COMPRESSORS: list[Any] = [
    None,
    {"id": "zlib", "level": 1},
    {"id": "lz4", "acceleration": 1},
    {"id": "zstd", "level": 1},
]
LONGEST = 12


class ArrayProgram:
    """An array, its model, and the steps of a program."""

    def __init__(self, rng: Random, folder: Path) -> None:
        self.rng = rng
        self.store = make_store(rng, folder, [*OF_NODES, "zip"])
        self.engine = rng.choice(["auto", "reference"])
        arguments = self._layout()
        self.array = self._with_engine(lambda: tessarr.create_array(self.store, **arguments))
        self.model = np.full(arguments["shape"], arguments["fill_value"], self.array.dtype)
        self.steps: list[Callable[[], None]] = [
            *[self.read_part] * 3,
            *[self.write_part] * 3,
            *[
                self.read_outer,
                self.write_outer,
                self.read_points,
                self.write_points,
                self.read_masked,
                self.write_masked,
            ],
            *[self.read_view, self.resize, self.append, self.append, self.reopen, self.change_attributes, self.fill],
        ]
        self.attributes: dict[str, Any] = {}

    def _layout(self) -> dict[str, Any]:
        rng = self.rng
        rank, new = rng.choice([1, 1, 2, 2, 3]), rng.random() < 0.7 or formats(self.store) == [3]
        dtype = np.dtype(rng.choice(DTYPES))
        chunks = tuple(rng.randint(1, 4) for _ in range(rank))
        arguments: dict[str, Any] = {
            "shape": tuple(rng.randint(0, 9) for _ in range(rank)),
            "dtype": dtype,
            "chunks": chunks,
            "zarr_format": 3 if new else 2,
            "fill_value": self._values(dtype, ())[()],
            "compressors": rng.choice(COMPRESSORS if new else OLD_COMPRESSORS),
            "config": {"write_empty_chunks": rng.random() < 0.3},
        }
        if new and rng.random() < 0.5:
            arguments["shards"] = tuple(length * rng.randint(1, 3) for length in chunks)
        if new and rng.random() < 0.3:
            arguments["filters"] = [{"name": "transpose", "configuration": {"order": rng.sample(range(rank), rank)}}]
        if not new:
            arguments["order"] = rng.choice("CF")
        return arguments

    def _values(self, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Any:
        """Values of which a third are equal, so that whole chunks of one value happen."""
        bits = np.random.default_rng(self.rng.randrange(2**32))
        small = bits.integers(0, 3, shape) if self.rng.random() < 0.7 else np.zeros(shape, int)
        if dtype.kind in "SU":
            return np.asarray(np.array(["", "ab", "xy"])[small]).astype(dtype)
        return np.asarray(small).astype("i8").astype(dtype)

    def _with_engine(self, make: Callable[[], Any]) -> Any:
        with tessarr.config.set({"engine": self.engine}):
            return make()

    def check(self, found: Any, expected: Any) -> None:
        """Compare what was read with what the model has."""
        expected = np.asarray(expected)
        found = np.asarray(found)
        assert found.shape == expected.shape, f"shape {found.shape} instead of {expected.shape}"
        if expected.ndim == 0:
            found, expected = (
                found.astype(self.model.dtype),
                expected.astype(self.model.dtype),
            )  # a scalar has no byte order
        assert found.dtype == expected.dtype, f"{found.dtype} instead of {expected.dtype}"
        assert found.tobytes() == expected.tobytes(), f"{found.tolist()} instead of {expected.tolist()}"

    def read_part(self) -> None:
        where = selection(self.rng, self.model.shape)
        self.check(self.array[where], self.model[where])

    def write_part(self) -> None:
        where = selection(self.rng, self.model.shape)
        value = self._value_for(self.model[where].shape)
        self.array[where] = value
        self.model[where] = value

    def _value_for(self, shape: tuple[int, ...]) -> Any:
        return self._values(self.model.dtype, () if self.rng.random() < 0.3 else shape)

    def read_outer(self) -> None:
        where = outer(self.rng, self.model.shape, unique=False)
        self.check(self.array.oindex[where], self.model[np.ix_(*where)])

    def write_outer(self) -> None:
        where = outer(self.rng, self.model.shape, unique=True)
        value = self._value_for(tuple(map(len, where)))
        self.array.oindex[where] = value
        self.model[np.ix_(*where)] = value

    def read_points(self) -> None:
        where = points(self.rng, self.model.shape, unique=False)
        self.check(self.array.vindex[where], self.model[where])

    def write_points(self) -> None:
        where = points(self.rng, self.model.shape, unique=True)
        value = self._value_for(where[0].shape)
        self.array.vindex[where] = value
        self.model[where] = value

    def _mask(self) -> Any:
        return np.random.default_rng(self.rng.randrange(2**32)).random(self.model.shape) < self.rng.random()

    def read_masked(self) -> None:
        mask = self._mask()
        self.check(self.array.get_mask_selection(mask), self.model[mask])

    def write_masked(self) -> None:
        mask = self._mask()
        value = self._value_for((int(mask.sum()),))
        self.array.set_mask_selection(mask, value)
        self.model[mask] = value

    def read_view(self) -> None:
        where = selection(self.rng, self.model.shape, at_least_one=True)
        self.check(self.array.lazy[where].read(), self.model[where])

    def resize(self) -> None:
        shape = tuple(self.rng.randint(0, LONGEST) for _ in self.model.shape)
        self.array.resize(shape, clear=True)
        grown = np.full(shape, self.array.fill_value, self.model.dtype)
        kept = tuple(slice(0, min(old, new)) for old, new in zip(self.model.shape, shape, strict=True))
        grown[kept] = self.model[kept]
        self.model = grown

    def append(self) -> None:
        axis = self.rng.randrange(self.model.ndim)
        shape = tuple(self.rng.randint(0, 4) if at == axis else length for at, length in enumerate(self.model.shape))
        if self.model.shape[axis] + shape[axis] > 2 * LONGEST:
            return
        rows = self._values(self.model.dtype, shape)
        self.array.append(rows, axis)
        self.model = np.concatenate([self.model, rows], axis).astype(self.model.dtype)

    def fill(self) -> None:
        value = self.array.fill_value if self.rng.random() < 0.5 else self._values(self.model.dtype, ())[()]
        self.array[...] = value
        self.model[...] = value

    def change_attributes(self) -> None:
        name, value = self.rng.choice("abc"), self.rng.choice([None, 1, "ä", [1, {"b": 2}]])
        self.array.attrs[name] = value
        self.attributes[name] = value

    def reopen(self) -> None:
        self.engine = self.rng.choice(["auto", "reference"])
        self.store = reopened(self.store)
        self.array = self._with_engine(lambda: tessarr.open_array(self.store, mode="r+"))
        self.finish()

    def finish(self) -> None:
        """Read everything by both engines."""
        assert dict(self.array.attrs) == self.attributes, (
            f"attributes {dict(self.array.attrs)} instead of {self.attributes}"
        )
        for engine in ("auto", "reference"):
            with tessarr.config.set({"engine": engine}):
                self.check(tessarr.open_array(self.store, mode="r")[...], self.model)

"""Each selection method and its async variant read and write the same elements."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.errors import CodecError
from tessarr.storage import MemoryStore
from tessarr.types import AnyArray

MASK = np.arange(48).reshape(6, 8) % 5 == 0
SELECTIONS: dict[str, Any] = {
    "basic": (slice(1, 6, 2), 3),
    "orthogonal": ([0, 4, 5], slice(None, None, 3)),
    "coordinate": ([0, 5, 2], [7, 1, 1]),
    "point": ([1, 3], [0, 6]),
    "mask": MASK,
    "block": (1, slice(0, 2)),
}
CHOSEN: dict[str, Any] = {
    **SELECTIONS,
    "orthogonal": np.ix_([0, 4, 5], range(0, 8, 3)),
    "block": (slice(4, 6), slice(0, 6)),
}
"""The same elements in NumPy's words."""


@pytest.fixture(params=["auto", "reference"])
def array(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    with tessarr.config.set({"engine": request.param}):
        yield tessarr.create_array(tmp_path / "a", data=np.arange(48).reshape(6, 8), chunks=(4, 3))


def test_every_selection_method_has_a_case() -> None:
    methods = {name for name in dir(tessarr.Array) if name.endswith("_selection_async")}
    assert methods == {f"{verb}_{kind}_selection_async" for verb in ("get", "set") for kind in SELECTIONS}


@pytest.mark.parametrize("kind", SELECTIONS)
def test_an_awaited_read_gives_the_elements_that_numpy_chooses(array: Any, kind: str) -> None:
    expected: AnyArray = np.arange(48).reshape(6, 8)[CHOSEN[kind]]
    found = asyncio.run(getattr(array, f"get_{kind}_selection_async")(SELECTIONS[kind]))
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(getattr(array, f"get_{kind}_selection")(SELECTIONS[kind]), expected)


@pytest.mark.parametrize("kind", SELECTIONS)
def test_an_awaited_write_changes_the_elements_that_numpy_chooses_and_no_other(array: Any, kind: str) -> None:
    expected = np.arange(48).reshape(6, 8)
    expected[CHOSEN[kind]] = values = -1 - np.arange(expected[CHOSEN[kind]].size).reshape(expected[CHOSEN[kind]].shape)
    asyncio.run(getattr(array, f"set_{kind}_selection_async")(SELECTIONS[kind], values))
    np.testing.assert_array_equal(array[...], expected)
    array[...] = np.arange(48).reshape(6, 8)
    getattr(array, f"set_{kind}_selection")(SELECTIONS[kind], values)
    np.testing.assert_array_equal(array[...], expected)


@pytest.mark.parametrize("engine", ["reference", "native"])
def test_what_no_memory_holds_is_said_in_words(engine: str) -> None:
    """NumPy says ``ValueError: array is too big`` of more bytes than there are addresses."""
    with tessarr.config.set({"engine": engine}):
        z = tessarr.create_array(MemoryStore(), shape=(2**61,), chunks=(1000,), dtype="i4")
        with pytest.raises(MemoryError, match=r"shape \(2305843009213693952,\) and data type int32; select less"):
            z[...]
        with pytest.raises(MemoryError, match="select less"):
            z[...] = 5
        z[2**60] = 5
        assert z[2**60 - 1 : 2**60 + 1].tolist() == [0, 5]
    z = tessarr.create_array(MemoryStore(), shape=(10,), chunks=(2**62,), dtype="i4")
    with pytest.raises(CodecError, match="no memory holds the chunk") as raised:
        z[:3] = 1
    assert "smaller chunks" in str(raised.value)
    assert raised.value.key == "c/0"

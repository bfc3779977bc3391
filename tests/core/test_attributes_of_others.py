"""Attributes that several objects change at once: no change undoes one that another writer has stored."""

from __future__ import annotations

from pathlib import Path

import pytest

import tessarr
from tessarr.errors import ConflictError
from tessarr.types import ZarrFormat


def _twice(place: dict[str, bytes], **attributes: object) -> tuple[tessarr.Array, tessarr.Array]:
    tessarr.create_array(place, shape=(1,), dtype="i4", attributes=attributes)
    return tessarr.open_array(place, mode="r+"), tessarr.open_array(place, mode="r+")


def _stored(place: dict[str, bytes] | Path) -> dict[str, object]:
    return tessarr.open_array(place, mode="r").attrs.asdict()


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_nested_change_is_refused_where_another_writer_has_changed_the_attribute(
    tmp_path: Path, zarr_format: ZarrFormat
) -> None:
    tessarr.create_array(
        tmp_path, shape=(1,), dtype="i4", attributes={"log": [], "cfg": {"x": 0.5}}, zarr_format=zarr_format
    )
    mine, theirs = tessarr.open_array(tmp_path, mode="r+"), tessarr.open_array(tmp_path, mode="r+")
    theirs.attrs["log"].append(1)
    theirs.attrs["cfg"]["y"] = 2
    log = mine.attrs["log"]
    with pytest.raises(ConflictError, match=r"'log' was changed or deleted after it was read.*refresh"):
        log.append(2)
    with pytest.raises(ConflictError):
        mine.attrs["cfg"]["x"] = 3
    assert log == []
    assert _stored(tmp_path) == {"log": [1], "cfg": {"x": 0.5, "y": 2}}
    mine.attrs.refresh()
    mine.attrs["log"].append(2)
    mine.attrs["cfg"]["x"] = 3
    mine.attrs["cfg"]["z"] = [4]
    mine.attrs["cfg"]["z"].append(5)
    assert _stored(tmp_path) == {"log": [1, 2], "cfg": {"x": 3, "y": 2, "z": [4, 5]}}


def test_a_nested_change_of_an_attribute_that_was_deleted_is_refused() -> None:
    place: dict[str, bytes] = {}
    mine, theirs = _twice(place, log=[])
    del theirs.attrs["log"]
    with pytest.raises(ConflictError):
        mine.attrs["log"].append(1)
    assert _stored(place) == {}


def test_an_object_that_was_read_before_a_later_change_is_refused_and_one_that_made_it_goes_on() -> None:
    place: dict[str, bytes] = {}
    mine, _ = _twice(place, log=[])
    early, log = mine.attrs["log"], mine.attrs["log"]
    log.append(1)
    log.append(2)
    with pytest.raises(ConflictError):
        early.append(3)
    assert _stored(place) == {"log": [1, 2]}


def test_nan_in_an_attribute_is_equal_to_itself() -> None:
    place: dict[str, bytes] = {}
    tessarr.create_array(place, shape=(1,), dtype="i4", zarr_format=2)
    with tessarr.config.set({"attributes.allow_nan": True}):
        place[".zattrs"] = b'{"cfg": {"x": NaN}}'
        array = tessarr.open_array(place, mode="r+")
        array.attrs["cfg"]["y"] = 1
        assert _stored(place)["cfg"]["y"] == 1  # type: ignore[index]


def test_of_two_that_set_a_default_one_sets_it_and_both_get_it() -> None:
    place: dict[str, bytes] = {}
    mine, theirs = _twice(place)
    assert [mine.attrs.setdefault("owner", "A"), theirs.attrs.setdefault("owner", "B")] == ["A", "A"]
    theirs.attrs.setdefault("list", []).append(1)
    assert _stored(place) == {"owner": "A", "list": [1]}


def test_of_two_that_pop_an_attribute_one_gets_it_as_it_is_stored() -> None:
    place: dict[str, bytes] = {}
    mine, theirs = _twice(place, job=1, other=2)
    mine.attrs["job"] = {"a": [3]}
    assert theirs.attrs.pop("job") == {"a": [3]}
    with pytest.raises(KeyError, match="job"):
        mine.attrs.pop("job")
    assert mine.attrs.pop("job", None) is None
    assert theirs.attrs.popitem() == ("other", 2)
    with pytest.raises(KeyError):
        theirs.attrs.popitem()
    with pytest.raises(TypeError, match="one default"):
        mine.attrs.pop("job", 1, 2)
    assert _stored(place) == {}


def test_pop_of_an_attribute_that_is_not_there_writes_nothing() -> None:
    place: dict[str, bytes] = {}
    array = tessarr.create_array(place, shape=(1,), dtype="i4", zarr_format=2)
    assert array.attrs.pop("a", 1) == 1
    assert ".zattrs" not in place

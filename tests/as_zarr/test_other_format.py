"""A node where one of the other format is: allowed under the alias where no key can be of both, as zarr-python allows it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr import errors
from tessarr.settings import config


@pytest.fixture
def old_group(tmp_path: Path) -> Path:
    """A group of format 2 with one array."""
    group = tessarr.create_group(tmp_path, zarr_format=2, attributes={"a": 1})
    group.create_array("x", shape=(4,), chunks=(2,), dtype="int16")[:] = [1, 2, 3, 4]
    return tmp_path


def test_a_group_of_the_other_format_is_made_beside_one_that_stays(as_zarr: None, old_group: Path) -> None:
    before = {path: path.read_bytes() for path in old_group.rglob("*") if path.is_file()}
    new = tessarr.open_group(old_group, mode="a", zarr_format=3)
    new.attrs["b"] = 2
    new.create_array("y", shape=(4,), chunks=(2,), dtype="int16")[:] = 7
    assert {path: path.read_bytes() for path in before} == before
    old = tessarr.open_group(old_group, mode="r", zarr_format=2)
    assert (dict(old.attrs), list(old), np.asarray(tessarr.open_array(old_group / "x", mode="r")[:]).tolist()) == (
        {"a": 1},
        ["x"],
        [1, 2, 3, 4],
    )
    with pytest.warns(errors.ZarrUserWarning, match=r"Both zarr\.json .* and \.zgroup .* Zarr format 3 will be used"):
        assert dict(tessarr.open_group(old_group, mode="r").attrs) == {"b": 2}


@pytest.mark.parametrize("mode", ["w-", "x"])
def test_a_mode_that_replaces_nothing_hides_no_node_of_the_other_format(
    as_zarr: None, old_group: Path, mode: Any
) -> None:
    before = sorted(old_group.rglob("*"))
    uses: list[Callable[[], object]] = [
        lambda: tessarr.open_group(old_group, mode=mode),
        lambda: tessarr.open(old_group, mode=mode),
        lambda: tessarr.open_array(old_group / "x", mode=mode, shape=(4,), dtype="int16"),
        lambda: tessarr.open(old_group / "x", mode=mode, shape=(4,), dtype="int16"),
        lambda: tessarr.create((4,), store=old_group / "x", mode=mode, dtype="int16"),
    ]
    for use in uses:
        with pytest.raises(FileExistsError, match="contains a"):
            use()
    assert sorted(old_group.rglob("*")) == before
    assert tessarr.open_group(old_group / "new", mode=mode).zarr_format == 3


def test_tessarr_itself_refuses_a_node_where_one_of_the_other_format_is(old_group: Path) -> None:
    with pytest.raises(errors.ContainsGroupError):
        tessarr.open_group(old_group, mode="a", zarr_format=3)
    with pytest.raises(errors.ContainsArrayError):
        tessarr.create_array(old_group / "x", shape=(4,), dtype="int16", zarr_format=3)


@pytest.mark.parametrize(("first", "second"), [(2, 3), (3, 2)])
def test_an_array_of_the_other_format_is_made_where_its_chunks_have_other_keys(
    as_zarr: None, first: Any, second: Any
) -> None:
    store: dict[str, bytes] = {}
    values = {first: 1, second: 2}
    for number, value in values.items():
        tessarr.create_array(store, shape=(2, 2), dtype="uint8", zarr_format=number, fill_value=0)[...] = value
    for number, value in values.items():
        assert (tessarr.open_array(store, mode="r", zarr_format=number)[...] == value).all()
    with pytest.warns(errors.ZarrUserWarning, match=r"Both zarr\.json .* and \.zarray .* Zarr v3 will be used"):
        newest = tessarr.open(store, mode="r")
    assert np.array_equal(np.asarray(newest), np.full((2, 2), values[3]))


@pytest.mark.parametrize(
    ("there", "new"),
    [
        (
            {"zarr_format": 2},
            {"zarr_format": 3, "chunk_key_encoding": {"name": "v2", "separator": "."}, "fill_value": 7},
        ),
        ({"zarr_format": 2, "dtype": ">u2"}, {"zarr_format": 3, "chunk_key_encoding": {"name": "v2"}, "dtype": ">u2"}),
        ({"zarr_format": 3, "chunk_key_encoding": {"name": "v2", "separator": "/"}}, {"zarr_format": 2}),
        ({"zarr_format": 2}, {"zarr_format": 2}),
        ({"zarr_format": 3}, {"zarr_format": 3}),
        ({"zarr_format": 2}, {"zarr_format": 3, "storage_transformers": [{"name": "tessarr.versioned"}]}),
    ],
)
def test_an_array_whose_chunks_could_have_the_same_keys_is_refused(as_zarr: None, there: Any, new: Any) -> None:
    store: dict[str, bytes] = {}
    tessarr.create_array(store, shape=(2, 2), **{"dtype": "uint8", **there})[...] = 1
    before = dict(store)
    with pytest.raises(errors.ContainsArrayError):
        tessarr.create_array(store, shape=(2, 2), **{"dtype": "uint8", **new})
    assert store == before


@pytest.mark.parametrize("compressors", [None, {"id": "zstd", "level": 3}, {"id": "blosc", "cname": "lz4"}])
@pytest.mark.parametrize("separator", [".", "/"])
def test_an_array_is_made_over_the_chunks_of_the_same_array_of_format_2(
    as_zarr: None, separator: str, compressors: Any
) -> None:
    """So programs upgrade in place."""
    store: dict[str, bytes] = {}
    keys: Any = {"name": "v2", "separator": separator}
    same: dict[str, Any] = {"shape": (4, 4), "chunks": (2, 2), "dtype": "int16", "fill_value": 3}
    old = tessarr.create_array(
        store, **same, zarr_format=2, chunk_key_encoding=keys, compressors=compressors, attributes={"a": 1}
    )
    old[:2] = np.arange(8).reshape(2, 4)
    codecs: Any = [] if compressors is None else old.metadata.to_dict()["compressor"]
    new = tessarr.create_array(store, **same, zarr_format=3, chunk_key_encoding=keys, compressors=codecs)
    assert np.array_equal(new[...], old[...])
    for change in (
        {"chunks": (4, 2)},
        {"dtype": "uint16"},
        {"fill_value": 0},
        {"shape": (5, 4)},
        {"filters": [{"name": "transpose", "configuration": {"order": [1, 0]}}]},
    ):
        store.pop("zarr.json", None)
        with pytest.raises(errors.ContainsArrayError):
            tessarr.create_array(
                store, **{**same, **change}, zarr_format=3, chunk_key_encoding=keys, compressors=codecs
            )


@pytest.mark.parametrize(("first", "second"), [(2, 3), (3, 2)])
def test_an_array_and_a_group_do_not_share_a_path(as_zarr: None, first: Any, second: Any) -> None:
    """A member of the group could have the name of the chunks' prefix."""
    with pytest.raises(errors.ContainsArrayError):
        tessarr.create_group(tessarr.create_array({}, shape=(2,), dtype="i1", zarr_format=first), zarr_format=second)
    with pytest.raises(errors.ContainsGroupError):
        tessarr.create_array(tessarr.create_group({}, zarr_format=first), shape=(2,), dtype="i1", zarr_format=second)


@pytest.mark.parametrize("dtype", [">u2", ">f8", "<i4", "int64", [("a", ">u2"), ("b", "<f4")]])
def test_new_arrays_of_format_3_are_little_endian_under_the_alias_alone(dtype: Any) -> None:
    values = np.zeros(3, dtype=dtype)
    values[1] = 5
    with config.set({"zarr_python.little_endian": True}):
        theirs = tessarr.create_array({}, shape=(3,), chunks=(3,), dtype=dtype, compressors=None)
    ours = tessarr.create_array({}, shape=(3,), chunks=(3,), dtype=dtype, compressors=None)
    for array in theirs, ours:
        array[:] = values
        assert (array[:] == values).all()
    little = values.astype(np.dtype(dtype).newbyteorder("<")).tobytes()
    assert np.asarray(theirs.store.get("c/0")).tobytes() == little
    if np.dtype(dtype).byteorder == ">":
        assert np.asarray(ours.store.get("c/0")).tobytes() == values.tobytes()
    kept: dict[str, bytes] = {}
    big = {"name": "bytes", "configuration": {"endian": "big"}}
    tessarr.create_array(kept, shape=(3,), dtype="u2", serializer=big)
    assert b'"endian": "big"' in kept["zarr.json"]


def test_an_array_in_place_of_a_group_and_a_missing_directory_are_the_errors_of_zarr_python(
    as_zarr: None, tmp_path: Path
) -> None:
    tessarr.create_array(tmp_path / "3", shape=(2,), dtype="i1")
    with pytest.raises(errors.ContainsArrayError) as of_3:
        tessarr.open_group(tmp_path / "3", mode="r")
    tessarr.create_array(tmp_path / "2", shape=(2,), dtype="i1", zarr_format=2)
    with pytest.raises(errors.GroupNotFoundError):
        tessarr.open_group(tmp_path / "2", mode="r")
    with pytest.raises(FileNotFoundError, match="does not exist") as of_nothing:
        tessarr.open_group(tmp_path / "nothing", mode="r")
    assert not isinstance(of_3.value, errors.GroupNotFoundError)
    assert not isinstance(of_nothing.value, errors.GroupNotFoundError)
    (tmp_path / "empty").mkdir()
    with warnings.catch_warnings(), pytest.raises(errors.GroupNotFoundError):
        tessarr.open_group(tmp_path / "empty", mode="r")


def test_urls_of_local_files_take_the_option_of_fsspec_that_makes_directories(tmp_path: Path) -> None:
    made = tessarr.create_group(f"local://{tmp_path}/a/b", storage_options={"auto_mkdir": True})
    assert (tmp_path / "a" / "b" / "zarr.json").exists()
    assert made.path == ""
    with pytest.raises(TypeError, match="storage_options are for remote stores"):
        tessarr.create_group(f"local://{tmp_path}/c", storage_options={"anon": True})


def test_a_length_that_is_no_integer_is_an_error_of_its_type() -> None:
    with pytest.raises(TypeError, match=r"400\.5"):
        tessarr.create_array({}, shape=(400.5, 100), dtype="i1")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="non-negative"):
        tessarr.create_array({}, shape=(-1,), dtype="i1")


def test_a_group_is_made_where_there_is_no_directory(as_zarr: None, tmp_path: Path) -> None:
    assert tessarr.group(tmp_path / "a", path="b").path == "b"
    assert tessarr.open_group(tmp_path / "c").path == ""
    assert tessarr.group(tmp_path / "c", path="d").path == "d"

"""The verbs that look and change nothing: info, tree, cat."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli.verbs.cat import format_values, parse_selection

Run = Callable[..., Any]


def test_info_tells_what_an_array_is(run: Run, place: Path) -> None:
    told = run("info", place, "temperature", "--json").json
    array = tessarr.open_array(place, path="temperature", mode="r")
    assert (told["shape"], told["chunks"], told["dtype"]) == ([40, 60], [10, 20], "float64")
    assert told["attributes"] == {"units": "K"}
    assert told["nbytes"] == 2400 * 8
    assert told["nbytes_stored"] == array.nbytes_stored() > 0
    assert told["values_stored"] == told["nchunks"] == 12
    assert told["engine"]["name"] == array.engine.name
    assert told["zarr_format"] == array.zarr_format


def test_info_in_words_names_the_dimensions_and_the_engine(run: Run, data: Path) -> None:
    ran = run("info", data / "temperature")
    assert ran.code == 0
    assert "(y: 40, x: 60)" in ran.out
    assert "zstd" in ran.out
    assert "engine" in ran.out


def test_info_counts_what_is_in_a_group(run: Run, place: Path) -> None:
    told = run("info", place, "--json").json
    assert (told["kind"], told["arrays"], told["groups"]) == ("group", 2, 1)
    assert told["members"] == ["below", "temperature"]
    assert "2 arrays, 1 group" in run("info", place).out


def test_info_without_sizes_lists_nothing(run: Run, data: Path) -> None:
    told = run("info", data, "temperature", "--no-sizes", "--json").json
    assert told["nbytes_stored"] is None


def test_info_writes_shards_inner_codecs_and_a_fill_value_that_is_nan(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(
        tmp_path / "a", shape=(8,), chunks=(2,), shards=(4,), dtype="f4", fill_value=np.nan, compressors=["gzip"]
    )
    told = run("info", tmp_path / "a", "--json").json
    assert (told["chunks"], told["shards"], told["fill_value"]) == ([2], [4], "NaN")
    assert told["codecs"][0]["name"] == "sharding_indexed"
    assert "gzip" in run("info", tmp_path / "a").out


def test_attributes_that_json_cannot_hold_are_written_by_name(run: Run, tmp_path: Path) -> None:
    tessarr.open_group(tmp_path / "g", mode="w", zarr_format=2)
    (tmp_path / "g" / ".zattrs").write_text('{"a": NaN, "b": [Infinity]}')
    assert run("info", tmp_path / "g", "--json").json["attributes"] == {"a": "NaN", "b": ["Infinity"]}


def test_tree_draws_every_node_in_order(run: Run, place: Path) -> None:
    lines = run("tree", place).out.splitlines()
    assert lines[0] == "/"
    assert lines[1] == "├── below"
    assert lines[2].startswith("│   └── table (2) struct")
    assert lines[3].startswith("└── temperature (")


def test_tree_as_json_nests_as_the_hierarchy_does(run: Run, place: Path) -> None:
    told = run("tree", place, "--json", "--sizes").json
    assert list(told["members"]) == ["below", "temperature"]
    assert told["members"]["below"]["members"]["table"]["shape"] == [2]
    assert told["members"]["temperature"]["nbytes"] == 2400 * 8


def test_tree_goes_down_as_far_as_it_is_told(run: Run, data: Path) -> None:
    assert "table" not in run("tree", data, "--level", "1").out
    assert "members" not in run("tree", data, "--level", "1", "--json").json["members"]["below"]


def test_a_path_may_lead_into_a_directory_or_a_zip_file(run: Run, place: Path) -> None:
    assert run("cat", place / "below" / "table", "--csv").out == "station,value\n1,0.5\n2,nan\n"


@pytest.mark.parametrize(
    ("text", "index"),
    [
        ("...", np.s_[...]),
        ("0, :3", np.s_[0, :3]),
        ("-1", np.s_[-1]),
        ("..., 5", np.s_[..., 5]),
        ("::7, ::-9", np.s_[::7, ::-9]),
        ("3:3", np.s_[3:3]),
        ("[1, 4], 2:4", np.s_[[1, 4], 2:4]),
    ],
)
def test_cat_selects_as_numpy_does(run: Run, data: Path, text: str, index: Any) -> None:
    wanted = np.arange(2400.0).reshape(40, 60)[index]
    told = run("cat", data, "temperature", "--slice", text, "--json").json
    assert told == {"shape": list(wanted.shape), "dtype": "float64", "values": wanted.tolist()}


def test_cat_of_two_lists_takes_their_outer_product(run: Run, data: Path) -> None:
    wanted = np.arange(2400.0).reshape(40, 60)[np.ix_([3, 1], [5, 2])]
    assert run("cat", data, "temperature", "-s", "[3, 1], [5, 2]", "--json").json["values"] == wanted.tolist()


@pytest.mark.parametrize("text", ["1.5", "a", "0,0,0", "..., ...", "::0", "1:2:3:4", "[a]"])
def test_what_is_no_selection_is_told_and_ends_with_two(run: Run, data: Path, text: str) -> None:
    ran = run("cat", data, "temperature", "--slice", text)
    assert ran.code == 2
    assert ran.err.startswith("tessarr: error: ")
    assert "Traceback" not in ran.err


def test_an_index_outside_names_the_dimension(run: Run, data: Path) -> None:
    ran = run("cat", data, "temperature", "-s", "0, 60")
    assert ran.code == 2
    assert "dimension 1" in ran.err


@pytest.mark.parametrize("shape", [(), (0,), (7,), (1001,), (40, 60), (3, 400), (12, 13, 14)])
def test_values_are_shown_as_numpy_shows_them(shape: tuple[int, ...]) -> None:
    values = np.arange(int(np.prod(shape)), dtype="int32").reshape(shape)
    array = tessarr.create_array({}, data=values)
    with np.printoptions(linewidth=110):
        assert format_values(array, parse_selection("...", shape), []) == str(values)


def test_of_a_large_array_only_the_edges_are_read(run: Run, tmp_path: Path) -> None:
    array = tessarr.create_array(tmp_path / "a", shape=(100, 100), chunks=(10, 10), dtype="i4", compressors=None)
    array[...] = 1
    (tmp_path / "a" / "c" / "5" / "5").write_bytes(b"broken")
    assert run("cat", tmp_path / "a").code == 0
    assert run("cat", tmp_path / "a", "--all").code == 2


def test_all_values_are_shown_on_demand(run: Run, data: Path) -> None:
    assert "..." not in run("cat", data, "temperature", "--all").out
    assert "..." in run("cat", data, "temperature").out


def test_csv_of_a_plane_has_a_line_per_row(run: Run, data: Path) -> None:
    rows = list(csv.reader(io.StringIO(run("cat", data, "temperature", "-s", "2:5, :4", "--csv").out)))
    assert [[float(cell) for cell in row] for row in rows] == np.arange(2400.0).reshape(40, 60)[2:5, :4].tolist()


def test_csv_quotes_text(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "s", data=np.array(['a,"b"', "ü"], dtype=np.dtypes.StringDType()))
    assert list(csv.reader(io.StringIO(run("cat", tmp_path / "s", "--csv").out))) == [['a,"b"'], ["ü"]]


def test_csv_needs_at_most_two_dimensions(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a", data=np.zeros((2, 2, 2)))
    ran = run("cat", tmp_path / "a", "--csv")
    assert (ran.code, "--slice" in ran.err) == (2, True)


def test_fields_of_a_table_are_chosen_by_name(run: Run, data: Path) -> None:
    assert run("cat", data, "below/table", "-f", "value", "--json").json["values"] == [0.5, "NaN"]
    assert (
        run("cat", data, "below/table", "-f", "value", "-f", "station", "--csv").out == "value,station\n0.5,1\nnan,2\n"
    )
    ran = run("cat", data, "below/table", "-f", "nope")
    assert (ran.code, "station, value" in ran.err) == (2, True)


def test_raw_bytes_are_little_endian_in_c_order(data: Path, tmp_path: Path) -> None:
    import subprocess

    tessarr.create_array(tmp_path / "big", data=np.arange(600, dtype=">i4").reshape(20, 30), chunks=(7, 30))
    command = [sys.executable, "-m", "tessarr", "cat", str(tmp_path / "big"), "--raw"]
    raw = subprocess.run(command, capture_output=True, check=True).stdout
    assert raw == np.arange(600, dtype="<i4").tobytes()


def test_text_has_no_raw_bytes(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "s", data=np.array(["a"], dtype=np.dtypes.StringDType()))
    assert run("cat", tmp_path / "s", "--raw").code == 2


def test_cat_of_a_group_names_its_arrays(run: Run, data: Path) -> None:
    ran = run("cat", data)
    assert (ran.code, "temperature" in ran.err) == (2, True)

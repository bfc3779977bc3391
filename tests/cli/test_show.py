"""``tessarr show``: pictures in characters, of any array, compared with NumPy; in a terminal they are in test_terminal.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fixtures import cases, open_case

import tessarr
from tessarr.cli.terminal.chunk_map import draw_map
from tessarr.cli.terminal.dots import draw_line
from tessarr.cli.terminal.half_blocks import RAMP, draw_blocks
from tessarr.cli.terminal.screen import Screen
from tessarr.cli.terminal.shown import Selection, read_shown
from tessarr.cli.verbs.show import draw
from tessarr.conventions.ome.attributes import write
from tessarr.conventions.ome.images import Axis, Level
from tessarr.errors import TessarrError
from tessarr.storage import CountingStore, MemoryStore

Run = Callable[..., Any]
AIR = (np.arange(3 * 20 * 40, dtype="i2") % 601).reshape(3, 20, 40)
LEFT = 12
"""Cells left of a drawing."""


@pytest.fixture
def weather(tmp_path: Path) -> Path:
    group = tessarr.open_group(tmp_path / "w.zarr", mode="w")
    packed = {"scale_factor": 0.5, "add_offset": 200.0, "_FillValue": 7, "units": "K"}
    group.create_array("air", data=AIR, chunks=(1, 10, 10), dimension_names=("time", "lat", "lon"), attributes=packed)
    group.create_array(
        "time", data=np.arange(3), dimension_names=("time",), attributes={"units": "days since 2000-01-01"}
    )
    group.create_array("lat", data=np.linspace(-19.0, 19.0, 20), dimension_names=("lat",))
    group.create_array("words", data=np.array(["one", "two"], dtype="U"))
    group.create_array("z", data=np.array([[3 + 4j, 0], [0, 0]]))
    group.create_array("rgb", data=np.tile(np.array([10, 200, 30], "u1"), (40, 50, 1)))
    group.create_array("days", data=np.array(["2000-01-01", "NaT", "2000-01-03"], dtype="M8[D]"))
    group.create_array("people", data=np.array([(1, 2.5), (2, 3.5)], dtype=[("id", "i4"), ("mass", "f8")]))
    group.create_array("empty", shape=(0, 4), chunks=(1, 1), dtype="f4")
    return tmp_path / "w.zarr"


def drawn(out: str) -> list[str]:
    """The lines of a plane, without labels: those of the ramp's characters."""
    lines = [line[LEFT:] for line in out.splitlines() if len(line) > LEFT]
    return [line for line in lines if line and set(line) <= set(RAMP + " ")]


def test_a_plane_without_a_terminal_is_drawn_by_a_ramp_in_80_columns(run: Run, weather: Path) -> None:
    out = run("show", weather, "air", "--limits", "200,500").out
    assert out.isascii()
    assert all(len(line) <= 80 for line in out.splitlines())
    lines = drawn(out)
    height, width = len(lines), max(map(len, lines))
    plane = AIR[0][::-1] * 0.5 + 200.0  # latitudes rise upwards
    rows = ((np.arange(height) + 0.5) * 20 / height).astype(int)
    columns = ((np.arange(width) + 0.5) * 40 / width).astype(int)
    shares = (plane[rows][:, columns] - 200) / 300
    places = np.minimum((shares * len(RAMP)).astype(int), len(RAMP) - 1)
    characters = np.array(list(RAMP))[places]
    characters[AIR[0][::-1][rows][:, columns] == 7] = " "
    assert lines == ["".join(row).rstrip() for row in characters.tolist()]
    assert "time = 0 (2000-01-01)" in out
    assert "19 " in out.splitlines()[2]
    assert "200 .:-=+*#%@ 500 K" in out


def test_a_selection_is_by_position_by_name_by_label_or_in_brackets(run: Run, weather: Path) -> None:
    whole = run("show", weather, "air", "--at", "time=2").out
    assert "time = 2 (2000-01-03)" in whole
    assert run("show", weather, "air", "--at", "time=2000-01-03").out == whole
    assert run("show", weather, "air", "-s", "2, ...").out == whole
    assert run("show", weather, "air[-1]").out == whole
    line = run("show", weather, "air", "-s", "1, :, 3").out
    assert "lon = 3" in line
    assert run("show", weather, "air", "--at", "time=1", "--at", "lon=3").out == line
    nearest = run("show", weather, "air", "--at", "lat=nearest::0.5", "--at", "time=0").out
    assert "lat = 9 (-1)" in nearest or "lat = 10 (1)" in nearest


def test_the_directory_of_one_array_has_the_coordinates_beside_it(run: Run, weather: Path) -> None:
    assert (
        run("show", weather / "air", "--at", "time=2000-01-03").out.splitlines()[1:]
        == (run("show", weather, "air", "--at", "time=2").out.splitlines()[1:])
    )
    (weather / "zarr.json").unlink()  # a directory that is no group: what is beside the array has no meaning for it
    assert "time = 2\n" in run("show", weather / "air", "--at", "time=2").out


def test_elements_are_written_where_they_cannot_be_drawn(run: Run, weather: Path) -> None:
    assert run("show", weather, "air", "-s", "1,2,3").out.splitlines()[-1] == str(float(AIR[1, 2, 3]) * 0.5 + 200)
    assert run("show", weather, "air", "-s", "1,2,3", "--no-decode").out.splitlines()[-1] == str(AIR[1, 2, 3])
    assert "['one' 'two']" in run("show", weather, "words").out
    assert "(1, 2.5)" in run("show", weather, "people").out


def test_complex_numbers_times_and_colours_are_drawn(run: Run, weather: Path) -> None:
    assert "@" in drawn(run("show", weather, "z", "--limits", "0,5").out)[0]
    days = run("show", weather, "days").out
    assert "2000-01-03" in days
    assert "2000-01-01" in days
    gray = drawn(run("show", weather, "rgb").out)
    assert {character for line in gray for character in line} == {RAMP[80 * len(RAMP) // 255]}


def test_json_has_what_is_drawn_with_its_elements(run: Run, weather: Path) -> None:
    told = run("show", weather, "air", "--at", "time=1", "--json").json
    assert told["array"] == "/air"
    assert [axis["name"] for axis in told["axes"]] == ["lat", "lon"]
    expected = np.where(AIR[1] == 7, np.nan, AIR[1] * 0.5 + 200.0)
    np.testing.assert_array_equal(np.array(told["values"], float), expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["air", "--at", "time=2001-01-01"], "is not a label"),
        (["air", "--at", "height=1"], "is not a dimension"),
        (["air", "--at", "time"], "DIMENSION=SELECTION"),
        (["air", "-s", "0:2, :, :"], "3 dimensions cannot be drawn"),
        (["air", "-s", "0, 0, 0, 0"], "does not fit 3 dimensions"),
        (["air", "-s", "0, 5:5"], "empty"),
        (["air", "--limits", "a,b"], "limits must be two numbers"),
        (["empty"], "empty"),
        ([], "Name one of its arrays"),
    ],
)
def test_a_selection_without_meaning_is_an_error_in_words(
    run: Run, weather: Path, options: list[str], said: str
) -> None:
    ran = run("show", weather, *options)
    assert ran.code == 2
    assert said in ran.err
    assert "mistake in tessarr" not in ran.err


def test_a_plane_of_a_million_million_elements_is_drawn_from_few_chunks() -> None:
    store = CountingStore(MemoryStore())
    array = tessarr.create_array(store, shape=(10**6, 10**6), chunks=(1000, 1000), dtype="f4", fill_value=1)
    before = sum(store.counter.values())
    shown = read_shown(array, Selection(), across=68, down=36)
    assert shown.values.size < 10 * 68 * 36
    assert "one chunk stands for several" in shown.notes
    assert sum(store.counter.values()) - before < 300


def test_the_coarsest_level_of_a_pyramid_that_fits_is_read() -> None:
    counted = CountingStore(MemoryStore())
    plane = np.arange(256 * 512, dtype="f4").reshape(256, 512)
    axes = [Axis("y", "space"), Axis("x", "space")]
    levels = [Level(str(number), (2.0**number, 2.0**number)) for number in range(4)]
    group = tessarr.create_group(counted, attributes=write(axes, levels, version="0.5", name="image"))
    for number in range(4):
        group.create_array(str(number), data=plane[:: 2**number, :: 2**number], chunks=(32, 32))
    shown = read_shown(group, Selection("64:, 256:"), across=30, down=20)
    assert shown.notes[0] == "level 4 of 4"
    np.testing.assert_array_equal(shown.values, plane[64::8, 256::8])
    assert [axis.name for axis in shown.axes] == ["y", "x"]
    finer = read_shown(group["0"], Selection(), across=200, down=200)
    assert finer.notes[0] == "level 2 of 4"
    np.testing.assert_array_equal(finer.values, plane[::2, ::2])


def test_a_line_of_many_values_loses_no_peak() -> None:
    values = np.zeros(100_000)
    values[77_777] = 9.0
    rows = draw_line(values, (0, 9), 50, 4, has_unicode=False)
    assert rows[0].rstrip() == " " * 38 + "|"
    rows = draw_line(values, (0, 9), 50, 4, has_unicode=True)
    assert [len(row) for row in rows] == [50] * 4
    assert len(rows[0].rstrip()) == 39


def test_a_missing_value_leaves_a_gap() -> None:
    values = np.array([0.0, np.nan, 0.0, 0.0])
    assert draw_line(values, (0, 1), 4, 1, has_unicode=False) == [". .."]
    pixels = np.array([[[0, 0, 0, 0]], [[1, 2, 3, 255]], [[0, 0, 0, 0]]], np.uint8)
    assert draw_blocks(pixels, 1 << 24) == ["\x1b[38;2;1;2;3m▄\x1b[0m", " "]


def test_the_chunk_map_counts_blocks_and_leading_axes() -> None:
    lines, legend = draw_map([(0, 0, 0), (1, 0, 0), (0, 1, 3)], (2, 2, 4), 4, 2, has_unicode=True)
    assert lines == ["█···", "···▒"]
    assert "2 × 1 × 1 = 2" in legend
    lines, _ = draw_map([(index,) for index in range(50)], (100,), 10, 5, has_unicode=False)
    assert lines == ["#####....."]
    lines, _ = draw_map([(10,)], (11,), 2, 1, has_unicode=False)
    assert lines == [".+"]


def test_info_draws_a_map_of_stored_chunks(run: Run, tmp_path: Path) -> None:
    array = tessarr.create_array(tmp_path / "a", shape=(8, 12), chunks=(2, 3), dtype="i4")
    array[:4, :6] = 1
    out = run("info", tmp_path / "a").out
    assert [line.split()[-1] for line in out.splitlines()[-5:-1]] == ["##..", "##..", "....", "...."]
    assert "# stored, . missing" in out
    assert "chunks stored" not in run("info", tmp_path / "a", "--no-sizes").out


@pytest.mark.filterwarnings("ignore")  # what the library says about odd documents is tested elsewhere
def test_every_array_of_another_writer_is_drawn_or_written() -> None:
    drawn = 0
    screen = Screen(60, 20, 0, has_unicode=False)
    for case in cases(Path(__file__).resolve().parents[1] / "fixtures"):
        try:
            array = open_case(case)
            array[tuple(length // 2 for length in array.shape)]
        except (TessarrError, ValueError, OSError, KeyError, TypeError, MemoryError, IndexError):
            continue  # what the library refuses, and arrays without elements
        lines = draw(read_shown(array, Selection(), across=48, down=28), screen)
        assert len(lines) >= 2, case.name
        drawn += 1
    assert drawn > 400

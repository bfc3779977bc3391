"""Descriptions of arrays and groups in notebooks: well-formed, escaped, true to scale, bounded, and without requests."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.core.notebook.describe import MAX_MEMBERS
from tessarr.core.notebook.grid_svg import MAX_BARS, MAX_LINES, SIDE
from tessarr.storage import CountingStore, MemoryStore
from tests.markup import Parsed

MAX_CHARS = 15_000
HOSTILE = "</style><script>alert('1')</script>\"&<b onclick=x>\u202e"


class Drawn(Parsed):
    """A document with a drawing."""

    def lines(self, kind: str) -> list[tuple[str, list[float]]]:
        """Direction ("v": along the axis that runs to the right) and offsets of each path, from the box it is drawn in."""
        found = []
        box = {"x": 0.0, "y": 0.0}
        for tag, attributes in self.tags:
            if tag == "rect":
                box = {name: float(str(attributes[name])) for name in ("x", "y")}
            elif tag == "path" and attributes["class"] == f"tsr-{kind}":
                moves = re.findall(r"M([\d.]+) ([\d.]+)([vh])", str(attributes["d"]))
                way = moves[0][2]
                found.append((way, [float(x) - box["x"] if way == "v" else float(y) - box["y"] for x, y, _ in moves]))
        return found


def described(node: Any) -> Drawn:
    """Describe and parse a node; what holds for every description is asserted here."""
    text = node._repr_html_()
    assert len(text) <= MAX_CHARS
    text.encode()
    parsed = Drawn(text)
    names = {tag for tag, _ in parsed.tags}
    assert not names & {"script", "iframe", "link", "img", "a", "object", "use", "image"}
    attributes = [name for _, held in parsed.tags for name in held]
    assert not [name for name in attributes if name.startswith("on") or name in ("id", "href", "src", "style")]
    assert "url(" not in text
    assert "@import" not in text
    return parsed


def make(shape: tuple[int, ...], chunks: Any, **more: Any) -> Any:
    return tessarr.create_array({}, name="a", shape=shape, chunks=chunks, dtype="u1", **more)


def scaled(ends: list[int], length: int, side: float = SIDE) -> Any:
    return pytest.approx([side * end / length for end in ends], abs=0.006)


def test_a_regular_grid_is_drawn_to_scale() -> None:
    parsed = described(make((50, 100), (20, 30)))
    assert parsed.lines("chunk") == [("v", scaled([30, 60, 90], 100)), ("h", scaled([20, 40], 50, SIDE / 2))]
    assert parsed.lines("shard") == []
    assert "3 × 4 = 12 chunks; 0 stored" in parsed.text


def test_a_rectilinear_grid_is_drawn_to_scale() -> None:
    parsed = described(make((60, 100), [[10, 20, 30], [50, 25, 25]]))
    assert parsed.lines("chunk") == [("v", scaled([50, 75], 100)), ("h", scaled([10, 30], 60, SIDE * 0.6))]
    assert "No. bytes stored" not in parsed.text


def test_shards_are_drawn_over_their_chunks() -> None:
    parsed = described(make((10, 80), (5, 10), shards=(10, 40)))
    assert parsed.lines("shard") == [("v", scaled([40], 80))]
    assert parsed.lines("chunk") == [("v", scaled(list(range(10, 80, 10)), 80)), ("h", scaled([5], 10, 25))]
    assert "1 × 2 = 2 shards (thick lines) of 2 × 8 = 16 chunks (thin lines); 0 stored" in parsed.text
    assert "sharding_indexed of chunks by bytes" in parsed.text


def test_axes_before_the_last_two_are_bars() -> None:
    parsed = described(make((2, 3, 4, 5, 60, 70), (1, 1, 2, 5, 30, 35), dimension_names=tuple("abcdef")))
    expected: list[tuple[str, list[int], int, float]] = [
        ("v", [1], 2, SIDE),
        ("v", [1, 2], 3, SIDE),
        ("v", [2], 4, SIDE),
    ]
    expected += [("v", [35], 70, SIDE), ("h", [30], 60, SIDE * 60 / 70)]
    assert parsed.lines("chunk") == [(way, scaled(ends, n, side)) for way, ends, n, side in expected]
    assert len(parsed.all("rect")) == 5
    assert "plane: e, f" in parsed.text


def test_arrays_without_axes_and_without_elements_are_drawn() -> None:
    assert "One element, not stored." in described(make((), ())).text
    empty = described(make((0, 5), (1, 5)))
    assert "0 × 1 = 0 chunks; no elements." in empty.text
    assert "stroke-dasharray" in empty.all("rect")[0]


def test_the_number_of_lines_is_bounded_and_said() -> None:
    parsed = described(make((10**6,), (10,)))
    ((_, offsets),) = parsed.lines("chunk")
    step = 3031
    assert len(offsets) == MAX_LINES
    assert offsets == scaled([10 * step * i for i in range(1, MAX_LINES + 1)], 10**6)
    assert f"along axis 0 a line is drawn every {step:,} chunks" in parsed.text
    assert "each axis is to its own scale" in described(make((2, 1000), (1, 500))).text
    many = described(make((2,) * 20, (1,) * 20, dimension_names=[f"{'n' * 500}{i}" for i in range(20)]))
    assert len(many.all("rect")) == MAX_BARS + 1
    assert f"{18 - MAX_BARS} axes are not drawn" in many.text


def test_the_drawing_has_a_text_alternative() -> None:
    (svg,) = described(make((4, 4), (2, 2))).all("svg")
    assert svg["role"] == "img"
    assert svg["aria-label"] == "2 × 2 = 4 chunks; 0 stored, where the plane is shaded."


def test_names_and_attributes_are_escaped_and_cut() -> None:
    store = MemoryStore()
    root = tessarr.create_group(store, attributes={HOSTILE: HOSTILE, "long": "x" * 10**6, "deep": [[[[1]]]]})
    name = HOSTILE.replace("/", "")
    array = root.create_array(name, shape=(2, 2), dtype="u1", dimension_names=(HOSTILE, "y"))
    array.attrs.update({f"k{i}": HOSTILE for i in range(100)})
    shown = described(array)
    assert HOSTILE[:15] in shown.text
    assert "… 88 more" in shown.text
    assert "Attributes (100)" in shown.text
    assert name[:50] in described(root).text


def test_text_that_utf8_cannot_hold_is_shown() -> None:
    store: dict[str, Any] = {}
    tessarr.create_array(store, shape=(2, 2), dtype="u1", dimension_names=("odd", "y"))
    store["zarr.json"] = bytes(store["zarr.json"]).replace(b"odd", b"\\ud800odd")
    assert "?odd: 2" in described(tessarr.open_array(store)).text


def test_light_and_dark_follow_the_notebook() -> None:
    (style,) = re.findall("<style>(.*?)</style>", make((4,), (2,))._repr_html_())
    assert "prefers-color-scheme:dark" in style
    assert '[data-jp-theme-light="true"] .tsr-node' in style
    assert '[data-jp-theme-light="false"] .tsr-node' in style
    rules = re.findall(r"([^{}]+){[^{}]*}", style.replace("@media (prefers-color-scheme:dark){", ""))
    assert [selector for rule in rules for selector in rule.split(",") if ".tsr-node" not in selector] == []


@pytest.mark.parametrize("zarr_format", [2, 3])
def test_a_group_shows_its_members(tmp_path: Path, zarr_format: int) -> None:
    root = tessarr.open_group(tmp_path / "g", mode="w", zarr_format=zarr_format)
    root.create_array("air", data=np.zeros((3, 4)))
    root.create_array("sub/below", shape=(5,), dtype="i2")
    (tmp_path / "g" / "stray").mkdir()
    listed = described(root).text
    assert "air (3, 4) float64" in listed
    assert "sub group" in listed
    assert "below" not in listed
    assert "stray" not in listed
    whole = described(tessarr.consolidate_metadata(tmp_path / "g")).text
    assert "below (5) int16" in whole


def test_an_array_makes_no_request_and_a_remote_group_none() -> None:
    memory = MemoryStore()
    tessarr.create_array(memory, name="g/a", shape=(4,), chunks=(2,), dtype="u1")
    store = CountingStore(memory)
    array, group = tessarr.open_array(store, path="g/a"), tessarr.open_group(store, path="g", mode="r")
    store.counter.clear()
    described(array)
    shown = described(group).text
    assert store.counter == {}
    assert "group.members()" in shown
    tessarr.consolidate_metadata(memory, path="g")
    held = tessarr.open_group(store, path="g", mode="r")
    store.counter.clear()
    assert "a (4) uint8" in described(held).text
    assert store.counter == {}


class Noting(MemoryStore):
    """Count listings and requested values."""

    listings = requested = 0

    def list_dir(self, prefix: str) -> Any:
        self.listings += 1
        return super().list_dir(prefix)

    def fetch(self, requests: Any) -> Any:
        self.requested += len(requests)
        return super().fetch(requests)


def test_a_large_group_is_listed_once_and_read_in_part() -> None:
    document = json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {}}).encode()
    values: dict[str, Any] = {f"{'n' * 200}{i:06}/zarr.json": document for i in range(100_000)}
    store = Noting({"zarr.json": document, **values})
    group = tessarr.open_group(store, mode="r")
    store.listings = store.requested = 0
    shown = described(group)
    assert store.listings == 1
    assert store.requested <= 2 * MAX_MEMBERS
    assert len(shown.all("li")) == MAX_MEMBERS + 1
    assert f"… {100_000 - MAX_MEMBERS:,} more" in shown.text


def test_a_large_consolidated_group_shows_each_level() -> None:
    def group(inner: Any = None) -> Any:
        held = (
            {"consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inner}} if inner else {}
        )
        return {"zarr_format": 3, "node_type": "group", "attributes": {}, **held}

    inner = {f"first/m{i:06}": group() for i in range(100_000)} | {"first": group(), "last": group(), "bad": {"x": 1}}
    root = tessarr.open_group({"zarr.json": json.dumps(group(inner)).encode()}, mode="r")
    shown = described(root)
    assert "last group" in shown.text
    assert f"… {100_000 - (MAX_MEMBERS - 3):,} more" in shown.text


def test_the_import_does_not_load_it() -> None:
    import subprocess
    import sys

    code = "import sys, tessarr; tessarr.group(); print([m for m in sys.modules if 'core.notebook' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("shards", [None, (4, 4)])
def test_a_drawing_is_shaded_where_values_are_stored(tmp_path: Path, shards: tuple[int, ...] | None) -> None:
    for store in (MemoryStore(), tmp_path / "x.zarr"):
        array = tessarr.create_array(
            store, shape=(3, 8, 16), chunks=(1, 2, 4), shards=shards and (1, *shards), dtype="i1"
        )
        assert "; 0 stored, where the plane is shaded" in array._repr_html_()
        array[1, 2, 5:9] = 1
        html = array._repr_html_()
        places = re.findall(r'd="(M[^"]*z)" fill="currentColor"', html)
        if shards is None:  # columns 1 and 2 of 4 in row 1 of 4
            assert "; 2 stored, where the plane is shaded" in html
            assert places == [f"M{26 + SIDE / 4:g} 73h{SIDE / 2:g}v{SIDE / 8:g}h-{SIDE / 2:g}z"]
        else:  # columns 1 and 2 of 4 in row 0 of 2
            assert places == [f"M{26 + SIDE / 4:g} 48h{SIDE / 2:g}v{SIDE / 4:g}h-{SIDE / 2:g}z"]
        array[...] = 1
        assert "; all stored" in array._repr_html_()
        assert not re.findall(r'd="M[^"]*z" fill="currentColor"', array._repr_html_())


def test_no_store_behind_a_network_is_asked_what_is_stored() -> None:
    store = CountingStore(MemoryStore())
    array = tessarr.create_array(store, data=np.arange(8), chunks=(2,))
    store.counter.clear()
    assert "stored" not in array._repr_html_()
    assert store.counter == {}

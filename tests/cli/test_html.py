"""Pages of results: well-formed, escaped, without scripts and requests, and true to the result."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tests.markup import Parsed

Run = Callable[..., Any]
HOSTILE = "</style><script>alert('1')</script>\"&<b onclick=x>"


def page(file: Path) -> Parsed:
    """Parse a page; what holds for all of them is asserted here."""
    text = file.read_text(encoding="utf-8")
    parsed = Parsed(text)
    assert not {tag for tag, _ in parsed.tags} & {
        "script",
        "iframe",
        "link",
        "img",
        "a",
        "object",
        "use",
        "image",
        "base",
    }
    names = [name for _, held in parsed.tags for name in held]
    assert not [name for name in names if name.startswith("on") or name in ("href", "src", "style", "srcset")]
    assert "url(" not in text
    assert "@import" not in text
    policy = [held.get("content") for tag, held in parsed.tags if tag == "meta" and "http-equiv" in held]
    assert policy == ["default-src 'none'; style-src 'unsafe-inline'"]
    return parsed


@pytest.fixture
def place(tmp_path: Path) -> Path:
    group = tessarr.open_group(tmp_path / "a.zarr", mode="w", attributes={"title": HOSTILE})
    air = group.create_array("air", shape=(40, 60), chunks=(10, 20), dtype="f8", attributes={"note": HOSTILE})
    air[:20] = 1.0
    group.create_array("<b>x", data=np.arange(4))
    return tmp_path / "a.zarr"


def test_info_of_an_array_draws_the_stored_chunks(run: Run, place: Path, tmp_path: Path) -> None:
    ran = run("info", place, "air", "--html", tmp_path / "i.html")
    assert ran.code == 0
    assert "array" in ran.out
    shown = page(tmp_path / "i.html")
    assert "6 stored, where the plane is shaded" in shown.text
    assert HOSTILE in shown.text
    assert "engine" in shown.text


def test_info_of_a_group_has_its_tree_and_sizes_as_bars(run: Run, place: Path, tmp_path: Path) -> None:
    assert run("info", place, "--html", tmp_path / "g.html").code == 0
    shown = page(tmp_path / "g.html")
    assert "/<b>x" in shown.text
    widths = [float(str(held["width"])) for tag, held in shown.tags if tag == "rect" and held["height"] == "12"]
    assert len(widths) == 2
    stored = sorted(
        (tessarr.open_array(place, path=name, mode="r").nbytes_stored() for name in ("air", "<b>x")), reverse=True
    )
    assert widths == [200.0, round(200 * stored[1] / stored[0], 1)]


def test_check_lists_findings_and_draws_where_chunks_are_damaged(run: Run, place: Path, tmp_path: Path) -> None:
    (place / "air" / "c" / "1" / "2").write_bytes(b"x")
    report = tmp_path / "r.html"
    ran = run("check", place, "--data", "--html", report, "--json")
    assert ran.code == 1
    shown = page(report)
    for finding in ran.json["findings"]:
        assert finding["rule"] in shown.text
        assert finding["message"] in shown.text
    assert "/air: 1 of 12 damaged" in shown.text
    shaded = [held["d"] for tag, held in shown.tags if tag == "path" and held.get("fill") == "currentColor"]
    assert len(shaded) == 1
    assert str(shaded[0]).count("M") == 1


def test_check_of_sound_data_says_so(run: Run, place: Path, tmp_path: Path) -> None:
    assert run("check", place, "--html", tmp_path / "r.html").code == 0
    assert "No problems found" in page(tmp_path / "r.html").text


def test_diff_shows_structure_and_shares_of_values(run: Run, place: Path, tmp_path: Path) -> None:
    other = tessarr.open_group(tmp_path / "b.zarr", mode="w", attributes={"title": "<i>other"})
    air = other.create_array("air", shape=(40, 60), chunks=(10, 20), dtype="f8", attributes={"note": HOSTILE})
    air[:10] = 1.0
    ran = run("diff", place, tmp_path / "b.zarr", "--data", "--html", tmp_path / "d.html", "--json")
    assert ran.code == 1
    shown = page(tmp_path / "d.html")
    assert "600 of 2,400 elements" in shown.text
    assert "<i>other" in shown.text
    assert len(ran.json["structure"]) == sum(tag == "tr" for tag, _ in shown.tags) - 2  # a head, and a bar
    assert run("diff", place, place, "--data", "--html", tmp_path / "e.html").code == 0
    assert "Both are equal." in page(tmp_path / "e.html").text


def test_what_cannot_be_shown_is_refused_in_words(run: Run, place: Path, tmp_path: Path) -> None:
    ran = run("diff", place, "--digest", "--html", tmp_path / "d.html")
    assert ran.code == 2
    assert "--html shows differences" in ran.err
    ran = run("info", place, "--html", tmp_path / "missing" / "d.html", "--json")
    assert ran.code == 2
    assert "error" in json.loads(ran.out)


def test_a_page_with_more_rows_than_a_browser_likes_says_how_many_are_left_out(
    run: Run, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tessarr.cli.report_html.MAX_ROWS", 3)
    assert run("info", place, "air", "--html", tmp_path / "i.html").code == 0
    assert "more; --json has all" in page(tmp_path / "i.html").text

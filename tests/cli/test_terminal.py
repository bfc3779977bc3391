"""The same pictures on a terminal: the command runs behind a pseudo-terminal, and an emulator shows what arrives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.tools.picture import colours, limits_of

pyte = pytest.importorskip("pyte", reason="pyte is not installed (extra test)")
pty = pytest.importorskip("pty", reason="Windows has no pseudo-terminals")

PLANE = np.add.outer(np.arange(30.0), np.arange(60.0) ** 1.5)
PLANE[3, 4] = np.nan
LEFT, ROWS = 12, 30
RICH = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("terminal") / "t.zarr"
    group = tessarr.open_group(target, mode="w")
    group.create_array("plane", data=PLANE, chunks=(10, 20))
    group.create_array("wave", data=np.sin(np.arange(500) / 40))
    return target


def screen_after(columns: int, environment: dict[str, str], *arguments: object) -> Any:
    """Run the command behind a terminal of `columns` × `ROWS` cells; return the emulator's screen when it has ended."""
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, columns, 0, 0))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLORTERM", "TERM")}
    source = str(Path(tessarr.__file__).resolve().parents[1])
    command = [sys.executable, "-m", "tessarr", *map(str, arguments)]
    process = subprocess.Popen(
        command, stdout=theirs, stderr=theirs, stdin=subprocess.DEVNULL,
        env={**kept, "PYTHONPATH": source, "PYTHONUTF8": "1", **environment},
    )  # fmt: skip
    os.close(theirs)
    received = b""
    while True:
        try:
            data = os.read(ours, 1 << 16)
        except OSError:  # Linux: the other end was closed
            break
        if not data:
            break
        received += data
    os.close(ours)
    assert process.wait() == 0, received.decode()
    screen = pyte.Screen(columns, ROWS)
    pyte.ByteStream(screen).feed(received)
    screen.received = received.decode()
    return screen


def rows_of_blocks(screen: Any) -> list[int]:
    return [row for row, line in enumerate(screen.display) if "▀" in line]


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_cell_has_the_colours_of_its_two_pixels(place: Path, columns: int) -> None:
    screen = screen_after(columns, RICH, "show", place, "plane")
    lines = rows_of_blocks(screen)[:-1]  # the last is the bar of colours
    width = max(len(screen.display[row].rstrip()) for row in lines) - LEFT
    height = 2 * len(lines)
    assert width > 20
    steps = [max(1, length // most) for length, most in ((30, 2 * (ROWS - 6)), (60, columns - LEFT))]
    read = PLANE[:: steps[0], :: steps[1]]
    rows = ((np.arange(height) + 0.5) * read.shape[0] / height).astype(int)
    across = ((np.arange(width) + 0.5) * read.shape[1] / width).astype(int)
    pixels = colours(read[rows][:, across], limits=limits_of(read))
    for line, row in enumerate(lines):
        for column in range(width):
            cell = screen.buffer[row][LEFT + column]
            upper, lower = pixels[2 * line, column], pixels[2 * line + 1, column]
            name = ["default" if one[3] == 0 else bytes(one[:3].tolist()).hex() for one in (upper, lower)]
            if name[0] == "default":
                assert cell.data in (" ", "▄")
            else:
                assert (cell.data, cell.fg, cell.bg) == ("▀", *name)


def test_a_terminal_of_256_colours_gets_near_ones(place: Path) -> None:
    exact = screen_after(80, RICH, "show", place, "plane")
    near = screen_after(80, {"TERM": "screen-256color"}, "show", place, "plane")
    assert "38;2;" not in near.received
    for row in rows_of_blocks(exact):
        for column in range(LEFT, 80):
            one, other = exact.buffer[row][column].fg, near.buffer[row][column].fg
            if one != "default":
                far = np.abs(np.array([*bytes.fromhex(one)], int) - np.array([*bytes.fromhex(other)], int))
                assert far.max() <= 60


def test_no_color_is_obeyed_and_a_dumb_terminal_gets_ascii(place: Path) -> None:
    plain = screen_after(100, {**RICH, "NO_COLOR": "1"}, "show", place, "plane")
    assert "\x1b" not in plain.received
    assert "@" in plain.received
    line = screen_after(100, {**RICH, "NO_COLOR": "1"}, "show", place, "wave")
    assert any(0x2800 < ord(character) < 0x2900 for character in line.received)
    dumb = screen_after(100, {"TERM": "dumb"}, "show", place, "wave")
    assert dumb.received.isascii()
    empty = screen_after(100, {**RICH, "NO_COLOR": ""}, "show", place, "plane")
    assert "\x1b[38;2;" in empty.received


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_line_has_its_dots_where_the_values_are(place: Path, columns: int) -> None:
    screen = screen_after(columns, RICH, "show", place, "wave")
    cells = [line[LEFT:].ljust(columns - LEFT) for line in screen.display]
    curve = [line for line in cells if any(0x2800 < ord(character) < 0x2900 for character in line)]
    values = np.sin(np.arange(500) / 40)
    for column in range(columns - LEFT):
        first, stop = (side * 500 // (columns - LEFT) for side in (column, column + 1))
        middle = values[first : stop + 1].mean()
        lit = [row for row, line in enumerate(curve) if line[column] != " "]
        expected = (1 - (middle + 1) / 2) * (len(curve) - 1)
        assert min(lit) - 1.5 <= expected <= max(lit) + 1.5


def test_no_line_is_wider_than_the_terminal(place: Path) -> None:
    for columns in (40, 63, 120):
        for verb in ("show", "info"):
            screen = screen_after(columns, RICH, verb, place, "plane")
            if verb == "show":
                assert screen.cursor.y < ROWS
                assert "plane" in screen.display[0]
            else:
                assert "█" in "".join(screen.display)

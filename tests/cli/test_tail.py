"""``tessarr tail``: the last rows, and those to come."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tests.waiting import PATIENCE_S, until

Run = Callable[..., Any]


def interruptible() -> None:
    """A shell may have started the tests with SIGINT ignored, which the processes they start would inherit."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    tessarr.create_array(str(tmp_path / "log.zarr"), data=np.arange(24).reshape(12, 2), chunks=(5, 2))
    return tmp_path / "log.zarr"


def test_the_last_rows_are_printed(run: Run, log: Path) -> None:
    assert run("tail", log, "-n", "2").out == "10: [20 21]\n11: [22 23]\n"
    assert len(run("tail", log).out.splitlines()) == 10
    assert run("tail", log, "-n", "0").out == ""
    assert run("tail", log, "--axis", "1", "-n", "1", "--json").out == f'{{"row": 1, "value": {[*range(1, 24, 2)]}}}\n'


def test_a_position_is_kept_between_runs(run: Run, log: Path, tmp_path: Path) -> None:
    saved = tmp_path / "seen.json"
    assert run("tail", log, "-n", "1", "--position", saved).out == "11: [22 23]\n"
    assert json.loads(saved.read_text()) == {"arrays": ["/"], "axis": 0, "row": 12}
    assert run("tail", log, "--position", saved).out == ""
    tessarr.open_array(str(log)).append([[7, 8]])
    assert run("tail", log, "--position", saved).out == "12: [7 8]\n"


@pytest.mark.parametrize("content", [b'{"arrays": ["/"], "ax', b"12", b"\xff"])
def test_a_damaged_position_is_named_and_kept(run: Run, log: Path, tmp_path: Path, content: bytes) -> None:
    saved = tmp_path / "seen.json"
    saved.write_bytes(content)
    result = run("tail", log, "--position", saved)
    assert (result.code, result.out) == (2, "")
    assert f"{saved} holds no saved position" in result.err
    assert saved.read_bytes() == content


def test_rows_that_are_appended_are_printed_until_an_interrupt(log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tessarr", "tail", str(log), "-f", "-n", "1", "--json", "--poll", "0.05"]
    with (
        out.open("w") as file,
        subprocess.Popen(command, stdout=file, stderr=subprocess.DEVNULL, preexec_fn=interruptible) as process,
    ):
        try:
            until(lambda: out.read_text().count("\n") == 1, "the last row is printed")
            z = tessarr.open_array(str(log))
            for number in range(3):
                z.append([[number, number]])
            until(lambda: out.read_text().count("\n") == 4, "the appended rows are printed")
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 130
        finally:
            process.kill()
    printed = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["row"] for one in printed] == [11, 12, 13, 14]
    assert printed[-1]["value"] == [2, 2]


def test_a_group_has_no_rows(run: Run, place: Path) -> None:
    ran = run("tail", place)
    assert ran.code == 2
    assert "temperature" in ran.err


def test_the_follow_ends_after_a_timeout(run: Run, log: Path) -> None:
    assert run("tail", log, "-f", "-n", "1", "--timeout", "0.01").out == "11: [22 23]\n"


def test_an_array_without_the_axis_is_no_mistake_of_the_library(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(str(tmp_path / "one"), shape=(), dtype="i4")
    done = run("tail", str(tmp_path / "one"))
    assert (done.code, "has no axis 0" in done.err, "mistake" in done.err) == (2, True, False)

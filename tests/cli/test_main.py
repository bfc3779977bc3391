"""What holds for every verb: help, exit codes, messages, one JSON document."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli import VERBS, main
from tests.pseudo_terminal import drawn_on_terminal

Run = Callable[..., Any]


def tessarr_command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    command = [sys.executable, "-m", "tessarr", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_examples(run: Run, verb: str) -> None:
    ran = run(verb, "--help")
    assert ran.code == 0
    assert "examples:" in ran.out
    assert f"tessarr {verb}" in ran.out.partition("examples:")[2]
    assert "--json" in ran.out


def test_the_help_lists_every_verb(run: Run) -> None:
    ran = run("--help")
    assert ran.code == 0
    assert all(verb in ran.out for verb in VERBS)


def test_no_verb_and_an_unknown_verb_are_wrong_use(run: Run) -> None:
    assert run().code == 2
    assert run("frobnicate").code == 2


def test_the_version_is_the_package_s(run: Run) -> None:
    assert tessarr.__version__ in run("--version").out


@pytest.mark.parametrize("verb", ["info", "tree", "cat", "check", "repair"])
def test_a_place_that_does_not_exist_is_one_line_and_code_two(run: Run, verb: str, tmp_path: Path) -> None:
    ran = run(verb, tmp_path / "nothing.zarr")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "no such file or directory" in ran.err
    assert not list(tmp_path.iterdir())


def test_a_node_that_does_not_exist_names_those_that_do(run: Run, data: Path) -> None:
    ran = run("info", data, "temperatur")
    assert ran.code == 2
    assert "There is temperature" in ran.err


def test_a_file_of_another_format_leads_to_convert(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.nc").write_bytes(b"CDF\x01 and so on")
    ran = run("info", tmp_path / "a.nc")
    assert (ran.code, "tessarr convert" in ran.err) == (2, True)


def test_debug_raises_what_is_otherwise_a_message(data: Path) -> None:
    with pytest.raises(tessarr.errors.NodeNotFoundError):
        main(["info", str(data), "nope", "--debug"])


def test_a_warning_is_one_line_on_standard_error(run: Run, tmp_path: Path) -> None:
    tessarr.open_group(tmp_path / "g", mode="w", zarr_format=2)
    (tmp_path / "g" / "zarr.json").write_text('{"zarr_format": 3, "node_type": "group"}')
    ran = run("info", tmp_path / "g", "--json")
    assert ran.code == 0
    assert ran.json["zarr_format"] == 3
    assert ran.err.startswith("tessarr: warning: ")


def test_exit_codes_reach_the_shell(data: Path) -> None:
    assert tessarr_command("info", data).returncode == 0
    assert tessarr_command("info", data, "nope").returncode == 2
    (data / "temperature" / "c" / "0" / "0").write_bytes(b"")
    assert tessarr_command("check", data).returncode == 1


def test_a_closed_pipe_is_no_error(data: Path) -> None:
    command = f'"{sys.executable}" -m tessarr cat "{data}" temperature --all --csv | head -n 1'
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    assert ran.stdout.startswith("0.0,1.0")


def test_output_in_a_plain_ascii_locale_is_still_utf_8(data: Path) -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    ran = subprocess.run(
        [sys.executable, "-m", "tessarr", "tree", str(data)], capture_output=True, env=environment, check=False
    )
    assert ran.returncode == 0
    assert "temperature" in ran.stdout.decode()


def test_no_progress_is_drawn_when_nobody_watches(data: Path, tmp_path: Path) -> None:
    ran = tessarr_command("convert", data, tmp_path / "copy.zarr")
    assert ran.returncode == 0
    assert ran.stderr == ""


@pytest.mark.parametrize("rich", [True, False])
def test_a_terminal_gets_a_progress_bar_with_and_without_rich(data: Path, tmp_path: Path, rich: bool) -> None:
    status, drawn = drawn_on_terminal(["convert", str(data), str(tmp_path / "copy.zarr")], rich=rich)
    assert status == 0
    assert "%" in drawn
    assert ("#" in drawn) is not rich


def test_storage_options_are_pairs(run: Run, data: Path) -> None:
    ran = run("info", data, "--storage", "anon")
    assert (ran.code, "NAME=VALUE" in ran.err) == (2, True)


@pytest.mark.parametrize("verb", ["info", "tree", "cat", "check"])
def test_with_json_an_error_is_a_document_too(run: Run, tmp_path: Path, verb: str) -> None:
    ran = run(verb, tmp_path / "nothing", "--json")
    assert ran.code == 2
    assert "no such" in ran.json["error"]["message"]
    assert ran.json["error"]["store"].endswith("nothing")
    assert "error:" in ran.err


def test_json_errors_carry_the_facts(run: Run, place: Path) -> None:
    ran = run("cat", place, "below", "--json")
    assert ran.code == 2
    assert ran.json["error"]["path"] == "/below"
    assert "table" in ran.json["error"]["hint"]


def test_check_decodes_every_chunk_with_data(run: Run, place: Path) -> None:
    ran = run("check", place, "--data", "--json")
    assert ran.code == 0
    assert ran.json["data"] == "decode"


def test_the_place_may_come_after_the_data_option_of_check(run: Run, place: Path) -> None:
    assert run("check", "--data", place).code == run("check", place, "--data", "decode").code
    assert run("check", "--data", "documents", place).out == run("check", place, "--data", "documents").out


@pytest.mark.parametrize("words", [["-s", "-1,:2"], ["-s-1,:2"], ["-s", "-1, :2"]])
def test_values_may_begin_with_a_minus(run: Run, place: Path, words: list[str]) -> None:
    assert run("cat", place, "temperature", *words).out == "[2340. 2341.]\n"


def test_a_layout_may_begin_with_a_whole_axis(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.arange(12).reshape(3, 4))
    assert run("convert", tmp_path / "a.npy", tmp_path / "a.zarr", "--chunks", "-1,2").code == 0
    assert tessarr.open_array(str(tmp_path / "a.zarr")).chunks == (3, 2)


def test_info_of_a_scalar_tells_its_chunk(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(str(tmp_path / "a.zarr"), shape=(), dtype="i4")
    assert "chunks      (), 1 chunk\n" in run("info", tmp_path / "a.zarr").out
    tessarr.create_array(str(tmp_path / "b.zarr"), shape=(), chunks=(), shards=(), dtype="i4")
    assert "shards      ()\n" in run("info", tmp_path / "b.zarr").out

"""The verbs that write or judge: convert, check, repair, migrate, diff, doctor."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tessarr
from tessarr.cli.verbs import doctor
from tessarr.cli.verbs.convert import parse_codec, parse_layout
from tessarr.codecs.array_to_bytes import vlen_native
from tessarr.errors import UnsupportedOperationError
from tessarr.stores.local import file as localfile

Run = Callable[..., Any]


# -- convert -------------------------------------------------------------------------------------------------------------


def test_convert_writes_reads_back_and_tells(run: Run, place: Path, tmp_path: Path) -> None:
    ran = run("convert", place, tmp_path / "copy.zarr")
    assert ran.code == 0
    assert "equal bit for bit" in ran.out
    assert run("diff", place, tmp_path / "copy.zarr", "--data", "--ignore", "codecs", "--json").json["values"] == []


def test_convert_as_json_is_the_whole_report(run: Run, data: Path, tmp_path: Path) -> None:
    told = run("convert", data, tmp_path / "copy.zip", "--json").json
    assert (told["written"], told["verified"], told["kind"]) == (True, True, "zarr")
    assert [node["path"] for node in told["nodes"]] == ["/", "/below", "/below/table", "/temperature"]
    assert told["nbytes"] == 2400 * 8 + 24
    assert told["nbytes_stored"] > 0


def test_a_dry_run_writes_nothing_and_tells_all(run: Run, data: Path, tmp_path: Path) -> None:
    ran = run("convert", data, tmp_path / "copy.zarr", "--dry-run", "--chunks", "y=20", "--shards", "40,60")
    assert ran.code == 0
    assert "/temperature" in ran.out
    assert "chunks (20, 20), shards (40, 60)" in ran.out
    assert list(tmp_path.iterdir()) == [data]


def test_a_dry_run_of_references_writes_and_replaces_nothing(run: Run, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "references.json"
    ran = run("convert", data, target, "--references", "--dry-run")
    assert (ran.code, list(tmp_path.iterdir())) == (0, [data])
    assert "would write references" in ran.out
    assert "/temperature" in ran.out
    target.write_text("{}")
    run("convert", data, target, "--references", "--dry-run", "--overwrite")
    assert target.read_text() == "{}"


@pytest.mark.parametrize(
    "options",
    [["--unpack"], ["--chunks", "20,30"], ["--shards", "auto"], ["--compressor", "gzip:3"], ["--consolidate"],
     ["--path", "a"], ["--plain"], ["--codecs", "[]"], ["--filters", "[]"]],
)  # fmt: skip
def test_options_of_copies_are_refused_with_references(
    run: Run, data: Path, tmp_path: Path, options: list[str]
) -> None:
    ran = run("convert", data, tmp_path / "references.json", "--references", *options)
    assert (ran.code, list(tmp_path.iterdir())) == (2, [data])
    assert f"{options[0]} is for copies" in ran.err


def test_options_of_layout_and_codec_reach_the_arrays(run: Run, data: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.zarr"
    ran = run(
        "convert", data, target, "--chunks", "20,30", "--shards", "40,60", "--compressor", "gzip:3", "--consolidate"
    )
    assert ran.code == 0
    array = tessarr.open_array(target, path="temperature")
    assert (array.chunks, array.shards) == ((20, 30), (40, 60))
    assert [codec.to_json() for codec in array.compressors] == [{"name": "gzip", "configuration": {"level": 3}}]
    assert run("info", target, "--json").json["consolidated"] is True


@pytest.mark.parametrize(
    "options",
    [
        ["--chunks", "1,x"],
        ["--chunks", "1,2,3,4"],
        ["--chunks", "nowhere=3"],
        ["--compressor", "zstd:fast"],
        ["--compressor", "nonsense"],
        ["--codecs", "{"],
        ["--rename", "a"],
        ["--format", "1"],
        ["--include", "nothing*"],
        ["--shards", "7,7"],
    ],
)
def test_wrong_options_of_convert_write_nothing(run: Run, data: Path, tmp_path: Path, options: list[str]) -> None:
    ran = run("convert", data, tmp_path / "copy.zarr", *options)
    assert ran.code == 2
    assert ran.err.startswith("tessarr: error: ")
    assert list(tmp_path.iterdir()) == [data]


def test_what_is_there_stays_without_overwrite(run: Run, data: Path, tmp_path: Path) -> None:
    tessarr.save_array(tmp_path / "there.zarr", np.arange(3))
    ran = run("convert", data, tmp_path / "there.zarr")
    assert (ran.code, "--overwrite" in ran.err) == (2, True)
    assert tessarr.open_array(tmp_path / "there.zarr")[...].tolist() == [0, 1, 2]
    assert run("convert", data, tmp_path / "there.zarr", "--overwrite").code == 0
    assert isinstance(tessarr.open(tmp_path / "there.zarr"), tessarr.Group)


def test_a_directory_that_is_no_zarr_is_never_replaced(run: Run, data: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").write_text("one")
    ran = run("convert", data, tmp_path / "thesis", "--overwrite")
    assert (ran.code, "data that is not Zarr" in ran.err) == (2, True)
    assert (tmp_path / "thesis" / "chapter").read_text() == "one"


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("10", (10,)),
        ("[3, 4]", (3, 4)),
        ("-1,5", (-1, 5)),
        ("time=5", {"time": 5}),
        ("8MB", "8MB"),
        ("keep", "keep"),
        ("none", None),
    ],
)
def test_layouts_are_read_from_text(text: str, layout: object) -> None:
    assert parse_layout(text) == layout


@pytest.mark.parametrize(
    ("text", "name", "configuration"),
    [
        ("zstd", "zstd", {"level": 0, "checksum": False}),
        ("gzip:9", "gzip", {"level": 9}),
        ("blosc:zstd:7:bitshuffle", "blosc", {"cname": "zstd", "clevel": 7, "shuffle": "bitshuffle", "blocksize": 0}),
        ("bz2:2", "numcodecs.bz2", {"level": 2}),
        ('{"name": "zstd", "configuration": {"level": 1, "checksum": true}}', "zstd", {"level": 1, "checksum": True}),
    ],
)
def test_codecs_are_read_from_text(text: str, name: str, configuration: dict[str, Any]) -> None:
    assert parse_codec(text) == {"name": name, "configuration": configuration}


@pytest.mark.parametrize("number", ["1", "2", "3"])
@pytest.mark.parametrize("codec", ["zstd:1", "gzip:1", "blosc:lz4:5:bitshuffle", "lz4", "none"])
@pytest.mark.filterwarnings("ignore:Zarr v1")
def test_a_short_codec_works_in_every_format_that_has_it(
    run: Run, data: Path, tmp_path: Path, number: str, codec: str
) -> None:
    target = tmp_path / "copy.zarr"
    ran = run("convert", data / "temperature", target, "--format", number, "--compressor", codec)
    if number == "1" and codec.partition(":")[0] in ("zstd", "gzip", "lz4"):
        assert (ran.code, "no such compressor" in ran.err) == (2, True)
        return
    assert ran.code == 0, ran.err
    told = run("info", target, "--json").json
    stored = str(told["codecs"] if number == "3" else told["compressor"])
    assert (codec.partition(":")[0] in stored) or (codec == "none" and ("zstd" not in stored))
    assert told["zarr_format"] == int(number)


# -- check and repair ----------------------------------------------------------------------------------------------------


def test_check_of_sound_data_ends_with_zero(run: Run, place: Path) -> None:
    ran = run("check", place, "--level", "decode")
    assert (ran.code, "no problems found" in ran.out) == (0, True)


def test_check_finds_a_damaged_chunk(run: Run, data: Path) -> None:
    (data / "temperature" / "c" / "0" / "0").write_bytes(b"damaged")
    ran = run("check", data, "--level", "decode", "--json")
    assert ran.code == 1
    assert [finding["chunk"] for finding in ran.json["findings"] if finding["severity"] == "error"] == [[0, 0]]


def test_repair_says_before_it_does_and_can_be_undone(run: Run, data: Path) -> None:
    tessarr.consolidate_metadata(data)
    document = data / "temperature" / "zarr.json"
    document.write_text(document.read_text().replace('"K"', '"degC"'))
    before = (data / "zarr.json").read_bytes()
    assert run("check", data).code == 1
    planned = run("repair", data)
    assert (planned.code, "--apply" in planned.out) == (1, True)
    assert (data / "zarr.json").read_bytes() == before
    done = run("repair", data, "--apply", "--json")
    assert (done.code, done.json["steps"][0]["outcome"]) == (0, "done")
    assert run("check", data).code == 0
    assert run("repair", data, "--undo", done.json["backup"]).code == 0
    assert (data / "zarr.json").read_bytes() == before


def test_repair_knows_its_rules(run: Run, data: Path) -> None:
    ran = run("repair", data, "--rule", "NOPE")
    assert (ran.code, "CONS-STALE" in ran.err) == (2, True)


# -- migrate and diff ----------------------------------------------------------------------------------------------------


def test_migrate_adds_the_other_version_and_takes_it_away_again(run: Run, tmp_path: Path) -> None:
    tessarr.open_group(tmp_path / "g", mode="w", zarr_format=2).create_array("a", data=np.arange(9), chunks=(4,))
    assert run("migrate", tmp_path / "g", "--dry-run", "--json").json["possible"] is True
    assert not (tmp_path / "g" / "zarr.json").exists()
    assert run("migrate", tmp_path / "g", "--verify", "all").code == 0
    assert tessarr.open_array(tmp_path / "g" / "a", zarr_format=3)[...].tolist() == list(range(9))
    assert run("migrate", tmp_path / "g", "--undo", "3").code == 0
    assert not (tmp_path / "g" / "a" / "zarr.json").exists()


def test_migrate_of_what_v2_cannot_say_ends_with_one_in_a_dry_run(run: Run, tmp_path: Path) -> None:
    tessarr.create_array(tmp_path / "a", shape=(8,), chunks=(2,), shards=(4,), dtype="i4")
    assert run("migrate", tmp_path / "a", "--to", "2", "--dry-run").code == 1
    assert run("migrate", tmp_path / "a", "--to", "2").code == 2


def test_a_copy_is_compared_with_digests_that_were_kept(run: Run, data: Path, tmp_path: Path) -> None:
    kept, copy = tmp_path / "kept.json", tmp_path / "copy.zarr"
    kept.write_text(json.dumps(run("diff", data, "--digest", "--json").json))
    shutil.copytree(data, copy)
    assert run("diff", copy, kept, "--digest").code == 0
    name = next(tessarr.open_group(copy).array_keys())
    tessarr.open_group(copy)[name].attrs["more"] = 1
    ran = run("diff", copy, kept, "--digest", "--json")
    assert (ran.code, ran.json["differing"]) == (1, ["", name])
    assert run("diff", copy, kept, "--digest", "--ignore", "attributes").code == 1  # kept with them
    assert run("diff", copy).code == 2
    assert run("diff", copy, "--digest", "--ignore", "codecs").code == 2


def test_diff_ends_with_zero_only_when_nothing_differs(run: Run, data: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.zip"
    run("convert", data, copy)
    assert run("diff", data, copy, "--data").code == 0
    tessarr.open_array(data, path="temperature")[3, 4] = -1
    ran = run("diff", data, copy, "--data", "--json")
    assert ran.code == 1
    assert [(found["path"], found["first"]) for found in ran.json["values"]] == [("temperature", [3, 4])]
    assert run("diff", data, copy).code == 0


# -- doctor --------------------------------------------------------------------------------------------------------------


def test_doctor_tries_every_codec_and_finds_nothing_wrong(run: Run) -> None:
    ran = run("doctor", "--json")
    assert ran.json["problems"] == []
    assert ran.code == 0
    assert ran.json["codecs"]["zstd"]["state"] == "ok"
    assert ran.json["codecs"]["numcodecs.pickle"]["state"] == "refused"
    assert ran.json["packages"]["required"]["numpy"] == np.__version__


def test_doctor_finds_a_setting_that_is_none(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TESSARR_ENGIEN", "native")
    ran = run("doctor")
    assert ran.code == 1
    assert "TESSARR_ENGIEN" in ran.out


def test_doctor_under_the_alias_finds_nothing_wrong_and_does_not_warn(tmp_path: Path) -> None:
    code = "import sys, tessarr.as_zarr; tessarr.as_zarr.install(); from tessarr.cli import main; sys.exit(main(['doctor']))"
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "PROBLEM" not in ran.stdout
    assert (ran.returncode, ran.stderr) == (0, "")


def test_doctor_says_which_changed_settings_have_no_effect(run: Run) -> None:
    with tessarr.config.set({"codec_pipeline.batch_size": 8, "async.concurrency": 7}):
        told = run("doctor", "--json").json
        printed = " ".join(run("doctor").out.split())
    assert told["settings"]["changed"] == {"codec_pipeline.batch_size": 8, "async.concurrency": 7}
    assert told["settings"]["without_effect"] == ["codec_pipeline.batch_size"]
    assert told["threads"]["requests"] == 7
    assert "codec_pipeline.batch_size=8 (without effect)" in printed
    assert "at most 7 requests in flight to one origin" in printed


def test_doctor_finds_a_codec_that_does_not_work(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from tessarr.codecs.bytes_to_bytes.gzip import GzipCodec

    def broken(*arguments: object, **options: object) -> bytes:
        raise RuntimeError("no gzip today")

    monkeypatch.setattr(GzipCodec, "encode", broken)
    with tessarr.config.set({"engine": "reference"}):
        ran = run("doctor", "--json")
    assert ran.code == 1
    assert ran.json["codecs"]["gzip"]["state"] == "broken"


@pytest.fixture
def _looked_for_anew() -> Iterator[None]:
    """The Rust module is not remembered from before the test, nor its absence after it."""
    vlen_native.native.cache_clear()
    localfile.reader_of_many.cache_clear()
    yield
    vlen_native.native.cache_clear()
    localfile.reader_of_many.cache_clear()


@pytest.mark.usefixtures("_looked_for_anew")
def test_without_the_rust_module_everything_says_so_and_nothing_is_wrong(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "tessarr._native", None)
    monkeypatch.delattr(tessarr, "_native", raising=False)
    monkeypatch.delitem(sys.modules, "tessarr.engine.native.engine", raising=False)
    ran = run("doctor")
    assert "not built" in " ".join(ran.out.split())
    assert "PROBLEM" not in ran.out
    array = tessarr.create_array(str(tmp_path / "a"), shape=(3,), dtype="i4")
    assert array.engine.name == "reference"
    assert "not built" in array.engine.reason
    with tessarr.config.set({"engine": "native"}), pytest.raises(UnsupportedOperationError, match="rustup"):
        tessarr.open_array(str(tmp_path / "a"))[...]


class _OfAnotherBuild(MetaPathFinder, Loader):
    """The Rust module as free-threaded Python finds it when it was built for the others."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        return ModuleSpec(fullname, self) if fullname == "tessarr._native" else None

    def create_module(self, spec: ModuleSpec) -> Any:
        raise SystemError("init function of _native returned uninitialized object")

    def exec_module(self, module: Any) -> None: ...


@pytest.mark.usefixtures("_looked_for_anew")
def test_a_rust_module_for_another_build_of_python_is_told_and_the_reference_engine_serves(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "meta_path", [_OfAnotherBuild(), *sys.meta_path])
    for name in ("tessarr._native", "tessarr.engine.native.engine"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(tessarr, "_native", raising=False)
    array = tessarr.create_array({}, shape=(3,), dtype="i4")
    assert array.engine.name == "reference"
    assert "cannot be loaded" in array.engine.reason
    assert tessarr.create_array(tmp_path / "files", shape=(3,), dtype="i4")[:].tolist() == [0, 0, 0]
    assert tessarr.open_array(tmp_path / "files").engine.name == "reference"
    assert "build tessarr for this Python" in " ".join(run("doctor").out.split())


@pytest.mark.parametrize("needs", [True, False])
def test_doctor_tells_whether_threads_run_free_and_which_package_ends_that(
    run: Run, monkeypatch: pytest.MonkeyPatch, needs: bool
) -> None:
    locked: list[bool] = []

    def import_it(name: str) -> Any:
        if name == "rich" and needs:
            locked.append(True)
        return importlib.import_module(name)

    monkeypatch.setattr(doctor, "_gil", lambda: bool(locked))
    monkeypatch.setattr(doctor, "import_module", import_it)
    monkeypatch.setattr(sysconfig, "get_config_var", lambda name: int(name == "Py_GIL_DISABLED"))
    out = " ".join(run("doctor").out.split())
    assert ("free-threaded until rich is imported, which needs the GIL" in out) == needs
    assert "free-threaded" in out


def test_doctor_names_the_engine_of_each_codec(run: Run) -> None:
    with tessarr.config.set({"engine": "reference"}):
        told = run("doctor", "--json").json
    assert told["settings"]["changed"] == {"engine": "reference"}
    assert {codec["engine"] for codec in told["codecs"].values()} == {"reference", None}


# -- pyramid -------------------------------------------------------------------------------------------------------------


def test_pyramid_makes_levels_beside_the_array(run: Run, tmp_path: Path) -> None:
    group = tessarr.open_group(tmp_path / "image.zarr", mode="w")
    group.create_array("0", data=np.arange(64.0).reshape(8, 8), chunks=(4, 4), dimension_names=("y", "x"))
    ran = run("pyramid", tmp_path / "image.zarr", "0", "--levels", "2", "--convention", "ome-0.5", "--json")
    assert (ran.code, [level["shape"] for level in ran.json["levels"]]) == (0, [[8, 8], [4, 4], [2, 2]])
    assert tessarr.open_array(tmp_path / "image.zarr", path="1")[0, 0] == np.mean([0, 1, 8, 9])


def test_pyramid_takes_scale_name_and_size_and_works_in_an_archive(run: Run, tmp_path: Path) -> None:
    from tessarr.stores.zip.store import ZipStore

    with ZipStore(tmp_path / "image.zip", mode="w") as store:
        group = tessarr.create_group(store)
        group.create_array("0", data=np.arange(4096).reshape(64, 64), chunks=(16, 16), dimension_names=("y", "x"))
    options = ("--convention", "ome-0.5", "--scale", "0.5,0.25", "--name", "cells", "--min-size", "16", "--fresh")
    assert run("pyramid", tmp_path / "image.zip", "0", *options).code == 0
    entry = tessarr.open_group(tmp_path / "image.zip", mode="r").attrs["ome"]["multiscales"][0]
    assert entry["name"] == "cells"
    assert [item["coordinateTransformations"][0]["scale"] for item in entry["datasets"]] == [
        [0.5, 0.25], [1.0, 0.5], [2.0, 1.0],
    ]  # fmt: skip
    assert run("pyramid", tmp_path / "image.zip", "0", "--scale", "a").code == 2


def test_pyramid_of_what_is_no_array_or_by_no_factor_is_an_error(run: Run, data: Path) -> None:
    assert run("pyramid", data, "nothing").code == 2
    assert run("pyramid", data, "temperature", "--factors", "auto").code == 2
    assert run("pyramid", data, "temperature", "--factors", "z=2").code == 2

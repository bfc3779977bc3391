"""The fuzzer itself: that it reaches every decoder, shares time fairly, and calls nothing a finding that is none."""

from __future__ import annotations

import importlib
import json
import os
import re
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tessarr import registry
from tessarr.errors import CodecError

ROOT = Path(__file__).parents[1]
IN_PYTHON = ["documents", "python-codecs", "arrays", "archives", "containers", "pending", "written", "kept"]


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports a module of the folder with the programs."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module


def fake(targets: ModuleType, **members: Any) -> Any:
    """A target whose members have one seed and change nothing."""
    made = {name: targets.Member([b"seed"], run, lambda data, _: data) for name, run in members.items()}
    return targets.Target(made, {})


def spin(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def worked(load: Any, monkeypatch: pytest.MonkeyPatch, out: Path, seconds: float, target: Any) -> None:
    python = load("fuzz_python")
    monkeypatch.setattr(python, "limit_memory", lambda _: None)
    monkeypatch.setitem(load("fuzz_targets").TARGETS, "fake", lambda: target)
    (out / "findings").mkdir()
    python.work("fake", seconds, 1, out)


def test_every_registered_codec_is_fuzzed_or_named_as_missing(load: Any) -> None:
    target = load("fuzz_targets").TARGETS["python-codecs"]()
    assert {*target.members, *target.missing} == set(registry.names("codec"))
    assert target.missing.get("numcodecs.pickle") == "is always refused"
    assert {"zstd", "numcodecs.zlib", "sharding_indexed", "vlen-utf8"} <= set(target.members)


def test_every_decoder_of_the_native_engine_is_fuzzed() -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "rust" / "src" / "codecs").glob("*.rs")]
    names = {
        name
        for source in sources
        for name in re.findall(r'^\s+"([a-z0-9._]+)" => (?:Codec|Filter|Checksum)', source, re.M)
    }
    names |= {name for source in sources for name in re.findall(r'"(filter\.[a-z0-9_]+)" =>', source)}
    assert {"zstd", "blosc", "bz2"} <= names
    fuzzed = (ROOT / "rust" / "fuzz" / "src" / "targets.rs").read_text(encoding="utf-8")
    assert {name for name in names if f'"{name}"' not in fuzzed} == set()


def test_the_targets_are_the_same_in_all_lists(load: Any) -> None:
    fuzz = load("fuzz")
    native = [name for name in fuzz.ORDER if name.startswith("native-")]
    assert sorted(load("fuzz_native").native_names()) == sorted(native)
    assert {*native, *load("fuzz_targets").TARGETS} == set(fuzz.ORDER)
    assert sorted([*native, *IN_PYTHON]) == sorted(fuzz.ORDER)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IN_PYTHON)
def test_the_seeds_of_every_member_are_accepted_or_refused_with_an_error_of_ours(load: Any, name: str) -> None:
    outcome = load("fuzz_python").outcome
    target = load("fuzz_targets").TARGETS[name]()
    for member, (seeds, run, _) in target.members.items():
        places = [outcome(run, seed) for seed in seeds[:12]]
        assert [finding for _, finding in places if finding] == [], member
        assert any(place == "values" for place, _ in places), member


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", IN_PYTHON)
def test_what_was_found_to_end_differently_is_accepted_or_refused(load: Any, name: str) -> None:
    python = load("fuzz_python")
    target = load("fuzz_targets").TARGETS[name]()
    kept = python.corpus(name)
    assert kept
    missing = kept.keys() - target.members.keys()
    if find_spec("zfpy") is None:
        missing = {member for member in missing if not member.endswith("zfpy")}
    assert missing == set()
    known = kept.keys() & target.members.keys()
    ends = [python.outcome(target.members[member].run, data) for member in known for data in kept[member]]
    assert [finding for _, finding in ends if finding] == []


def test_a_slow_member_takes_no_time_from_the_others(
    load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = fake(load("fuzz_targets"), slow=lambda _: spin(0.05), quick=lambda _: None)
    worked(load, monkeypatch, tmp_path, 0.4, target)
    members = json.loads(capsys.readouterr().out.splitlines()[-1])["members"]
    assert members["slow"][0] < 10 < members["quick"][0]
    assert members["quick"][1] > 0.1


def test_a_finding_names_its_member_and_is_repeated_from_its_file(
    load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def bad(data: bytes) -> None:
        raise KeyError("gone")

    def good(data: bytes) -> None:
        raise CodecError("damaged")

    worked(load, monkeypatch, tmp_path, 0.05, fake(load("fuzz_targets"), good=good, bad=bad))
    found = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "finding" in line]
    assert [(line["member"], line["finding"][:8]) for line in found] == [("bad", "KeyError")]
    file = Path(found[0]["file"])
    assert file.read_bytes() == b"bad\nseed"
    assert load("fuzz_python").repeat("fake", file) == 1
    assert "fake, member bad: KeyError" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no timers for processor time")
def test_only_processor_time_makes_an_input_late(load: Any) -> None:
    alarm = load("fuzz_process").alarm
    alarm(0.2)
    time.sleep(0.5)
    with pytest.raises(TimeoutError):
        spin(60)
    alarm(0)


@pytest.mark.skipif(sys.platform == "win32", reason="programs are waited for as on POSIX")
def test_a_program_that_neither_works_nor_speaks_is_ended(
    load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    process = load("fuzz_process")
    monkeypatch.setattr(process, "WITHIN_S", 0.4)
    ran = process.ended([sys.executable, "-c", "import time; time.sleep(60)"], dict(os.environ), tmp_path)
    assert ran.status != 0  # which it gives when it is left alone


@pytest.mark.skipif(sys.platform == "win32", reason="programs are waited for as on POSIX")
@pytest.mark.parametrize("works", [False, True])
def test_what_libfuzzer_calls_late_must_be_late_alone(
    load: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, works: bool
) -> None:
    module = load("fuzz_native")
    monkeypatch.setattr(module, "WITHIN_S", 0.5)
    program = tmp_path / "program"
    body = "import time\nwhile time.process_time() < 0.8: pass" if works else ""
    program.write_text(f"#!{sys.executable}\n{body}\n")
    program.chmod(0o755)
    native = module.Native.__new__(module.Native)
    native.out, native.binary, native.sanitizer = tmp_path, program, "address"
    file = tmp_path / "native-codecs-timeout-1"
    file.write_bytes(b"\x04data")
    ran = load("fuzz_process").Ended("SUMMARY: libFuzzer: timeout\n", 70, 1.0, 1)
    found = native.finding("native-codecs", ran, file, ["zstd", "lz4", "gzip"])
    assert [(one["finding"], one["member"]) for one in found] == [("SUMMARY: libFuzzer: timeout", "lz4")] * works
    assert file.exists() == works


def test_the_table_is_that_of_the_logs(load: Any, tmp_path: Path) -> None:
    fuzz = load("fuzz")
    campaign = fuzz.Campaign(tmp_path, 1.0, 1)
    run = {"commit": "abc", "cpu_seconds": 1800.4, "executions": 5000, "members": {"a": [1, 1]}, "findings": []}
    campaign.log("arrays", {**run, "started": "1"})
    campaign.log("arrays", {**run, "started": "2", "findings": [{}]})
    campaign.log("arrays", {**run, "started": "3", "commit": "other"})
    assert fuzz.table(tmp_path, "abc").splitlines()[2:] == ["| arrays | 1 | abc | 3,601 | 10,000 | 1 |"]
    assert len(fuzz.table(tmp_path, None).splitlines()) == 4

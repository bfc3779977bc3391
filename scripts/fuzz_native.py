"""Build and run the fuzz targets of the native engine (rust/fuzz) for `scripts/fuzz.py`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from fuzz_process import CORPUS, ROOT, SMALL, WITHIN_S, Ended, ended

RUST = ROOT / "rust"
NATIVE = "native-"

COVERAGE = (
    *("-Cpasses=sancov-module", "-Cllvm-args=-sanitizer-coverage-level=4", "--cfg", "fuzzing"),
    *("-Cllvm-args=-sanitizer-coverage-inline-8bit-counters", "-Cllvm-args=-sanitizer-coverage-pc-table"),
    *("-Cllvm-args=-sanitizer-coverage-trace-compares", "-Ccodegen-units=4"),
)
ADDRESS = ("-Zsanitizer=address",)
PLAIN = ("cargo", "test", "--release", "--test", "fuzz", "--manifest-path", str(RUST / "Cargo.toml"))


def native_names() -> list[str]:
    """List the targets of rust/fuzz, as its source does."""
    table = (RUST / "fuzz" / "src" / "targets.rs").read_text(encoding="utf-8")
    table = table[table.index("const TARGETS") :].partition(";")[0]
    return [NATIVE + name for name in re.findall(r'\("([a-z0-9-]+)", ', table)]


class Native:
    """Run the built fuzzer of the native engine."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.binary: Path | None = None
        self.sanitizer: str | None = None
        host = re.search(r"host: (\S+)", subprocess.run(["rustc", "-vV"], capture_output=True, text=True).stdout)
        target = Path(os.environ.get("CARGO_TARGET_DIR") or out / "target").absolute()
        for flags, sanitizer in (((*COVERAGE, *ADDRESS), "address"), (COVERAGE, None)):
            # `-Zsanitizer` is there in every compiler and asks for this variable in stable ones.
            environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags)}
            environment |= {"CFLAGS": "-g1 -fno-omit-frame-pointer" + (" -fsanitize=address" if sanitizer else "")}
            # The codecs are Rust and C. All C++ is libFuzzer's, and checks of its own accesses took a third of the time.
            environment |= {"CXXFLAGS": "-g1 -O3 -fno-sanitize=address"}
            command = ["cargo", "build", "--release", "--manifest-path", str(RUST / "fuzz" / "Cargo.toml")]
            command += ["--target-dir", str(target / (sanitizer or "plain")), "--target", host[1] if host else ""]
            built = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if built.returncode == 0 and host:
                self.binary = target / (sanitizer or "plain") / host[1] / "release" / "tessarr-fuzz"
                self.sanitizer = sanitizer
                return
            if re.search(r"could not compile `tessarr-", built.stderr):
                raise SystemExit(f"error: rust/fuzz does not compile:\n{built.stderr[-3000:]}")
            print(
                f"libFuzzer with sanitizer {sanitizer} cannot be built here:\n{built.stderr[-1500:]}", file=sys.stderr
            )
        print("the native engine is fuzzed without coverage (rust/tests/fuzz.rs)", flush=True)
        subprocess.run([*PLAIN, "--no-run"], check=True)

    @property
    def engine(self) -> str:
        """Name the source of inputs."""
        return "libFuzzer" if self.binary else "mutation"

    def command(self, name: str, seconds: float, seed: int) -> tuple[list[str], dict[str, str]]:
        """Return the command that runs a target for some time, and its environment."""
        target = name.removeprefix(NATIVE)
        environment = {**os.environ, "FUZZ_TARGET": target}
        if self.binary is None:
            environment |= {"FUZZ_SECONDS": f"{seconds:.0f}", "FUZZ_SEED": str(seed)}
            return [*PLAIN, "--", "--nocapture"], environment
        corpus = self.out / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        # libdeflate includes one file several times, which gives the same constant several names.
        environment |= {"FUZZ_SEEDS": str(corpus), "FUZZ_KEPT": str(CORPUS), "ASAN_OPTIONS": "detect_odr_violation=0"}
        limits = [f"-max_total_time={max(1, round(seconds))}", f"-timeout={WITHIN_S}", "-rss_limit_mb=2048"]
        where = ["-report_slow_units=100000", f"-artifact_prefix={self.out}/findings/{name}-"]
        size = ["-max_len=20000", "-len_control=0", "-print_final_stats=1", f"-seed={seed % 2**31 or 1}"]
        return [str(self.binary), str(corpus), *limits, *where, *size], environment

    def slice(self, name: str, seconds: float, seed: int) -> tuple[float, dict[str, Any]]:
        """Run a target for a slice; return its processor time and the results to add to its record."""
        command, environment = self.command(name, seconds, seed)
        before = set((self.out / "findings").glob(f"{name}-*"))
        ran = ended(command, environment, self.out)
        runs = re.findall(r"number_of_executed_units: (\d+)", ran.text) or re.findall(r": (\d+) inputs in", ran.text)
        edges = re.findall(r"cov: (\d+)", ran.text)
        members = counts(ran.text)
        found = []
        if ran.status:
            files = sorted(set((self.out / "findings").glob(f"{name}-*")) - before)
            found = self.finding(name, ran, files[0] if files else None, list(members))
        told = {"executions": sum(map(int, runs)), "coverage": max(map(int, edges), default=None)}
        return ran.cpu, {**told, "members": members, "findings": found}

    def keep(self, name: str) -> None:
        """Write the corpus of a target: of its inputs few that together reach every edge.

        Raises ``SystemExit`` where the inputs can't be compared.
        """
        if self.binary is None:
            return
        command, environment = self.command(name, 1, 1)
        del environment["FUZZ_SEEDS"]
        smallest = self.out / "smallest" / name
        shutil.rmtree(smallest, ignore_errors=True)
        smallest.mkdir(parents=True)
        how = ["-merge=1", "-use_counters=0", f"-max_len={SMALL}"]
        ran = ended([command[0], *how, str(smallest), str(self.out / "corpus" / name)], environment, self.out)
        if ran.status:
            raise SystemExit(f"error: the inputs of {name} cannot be compared: {ran.text[-1000:]}")
        members = list(counts(ran.text))
        inputs: dict[str, list[bytes]] = {member: [] for member in members}
        for file in smallest.iterdir():
            inputs[member_of(file, members) or members[0]].append(file.read_bytes()[1:])
        told = {
            member: [data.hex() for data in sorted(found, key=lambda data: (len(data), data))]
            for member, found in inputs.items()
        }
        (self.out / "corpus" / f"{name}.json").write_text(json.dumps(told, indent=0, sort_keys=True) + "\n")

    def finding(self, name: str, ran: Ended, file: Path | None, members: list[str]) -> list[dict[str, Any]]:
        """Describe the finding of a failed run; return nothing if an input was slow only because the machine was."""
        if file is not None and file.name.startswith(f"{name}-timeout-") and not self.late(name, file):
            file.unlink()
            return []
        pattern = r"^(?:SUMMARY: .*|.*panicked at.*|.*panics on.*|==\d+== ?ERROR: .*)$"
        said = re.findall(pattern, ran.text, re.MULTILINE) or [ran.text[-300:]]
        member = member_of(file, members)
        return [{"finding": said[0][:500], "member": member, "file": str(file) if file else None}]

    def late(self, name: str, file: Path) -> bool:
        """Return whether an input is slow when it runs alone: libFuzzer's clock also counts while a machine is paused."""
        command, environment = self.command(name, 1, 1)
        ran = ended([command[0], str(file), f"-timeout={100 * WITHIN_S}"], environment, self.out)
        return ran.status != 0 or ran.cpu > WITHIN_S

    def repeat(self, name: str, file: Path) -> int:
        """Run one input."""
        if self.binary is None:
            raise SystemExit("error: inputs of native targets are repeated with libFuzzer, which cannot be built here")
        command, environment = self.command(name, 1, 1)
        ran = ended([command[0], str(file)], environment, self.out)
        print(ran.text)
        print(f"{name}, member {member_of(file, list(counts(ran.text)))}: {'FINDING' if ran.status else 'fine'}")
        return ran.status


def counts(text: str) -> dict[str, list[float]]:
    """Parse the last reported executions and seconds of each member of a target, in the order of their numbers."""
    told = re.findall(r"^members: (\[.*\])$", text, re.MULTILINE)
    return {name: [runs, round(seconds, 2)] for name, runs, seconds in json.loads(told[-1])} if told else {}


def member_of(file: Path | None, members: list[str]) -> str | None:
    """Return the member that an input is for."""
    first = file.read_bytes()[:1] if file is not None else b""
    return members[first[0] % len(members)] if first and members else None

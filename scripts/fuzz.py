"""Hostile input for every decoder, the shard parser, documents, archives and whole arrays.

    python scripts/fuzz.py --list
    python scripts/fuzz.py [TARGET ...] [--seconds 60] [--jobs 2] [--seed N] [--out build/fuzz]
    python scripts/fuzz.py TARGET --input FILE

Values, typed errors and nothing else may come of any input, promptly and in bounded memory.

Targets of the native engine (``native-…``, rust/fuzz) run under libFuzzer, guided by coverage, with AddressSanitizer in
Rust and C; where that cannot be built, under the plain mutator of rust/tests/fuzz.rs. Targets in Python
(scripts/fuzz_targets.py) damage valid data and keep inputs that end in a new place.

A target's seconds are those of the processor: a busy or paused machine takes longer, and tests as much. Each target
leaves in the output folder ``TARGET.json`` (every run: seed, seconds, executions, findings), ``corpus/`` (libFuzzer's),
and ``findings/TARGET-…``, inputs that ``--input`` repeats. The exit status is 1 when there were findings.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUST = ROOT / "rust"
NATIVE = "native-"
MEMORY = 2 * 2**30
"""Bytes that a target in Python may take beyond what it holds when it starts."""
WITHIN_S = 20
"""Any one input must be done with before."""
SLICE_S = 120
"""A target runs in slices of at most so long."""
MOST_FINDINGS = 10
LONGEST = 2**20
"""Damaged inputs of so many bytes are damaged further."""

COVERAGE = (
    *("-Cpasses=sancov-module", "-Cllvm-args=-sanitizer-coverage-level=4", "--cfg", "fuzzing"),
    *("-Cllvm-args=-sanitizer-coverage-inline-8bit-counters", "-Cllvm-args=-sanitizer-coverage-pc-table"),
    *("-Cllvm-args=-sanitizer-coverage-trace-compares", "-Ccodegen-units=4"),
)
ADDRESS = ("-Zsanitizer=address",)


# -- the native engine ---------------------------------------------------------------------------------------------------


def native_names() -> list[str]:
    """The targets of rust/fuzz, as its source lists them."""
    table = (RUST / "fuzz" / "src" / "targets.rs").read_text(encoding="utf-8")
    table = table[table.index("const TARGETS") : table.index("];")]
    return [NATIVE + name for name in re.findall(r'^\s+\("([a-z0-9-]+)", ', table, re.MULTILINE)]


class Native:
    """The built fuzzer of the native engine."""

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
            command = ["cargo", "build", "--release", "--manifest-path", str(RUST / "fuzz" / "Cargo.toml")]
            command += ["--target-dir", str(target / (sanitizer or "plain")), "--target", host[1] if host else ""]
            built = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
            if built.returncode == 0 and host:
                self.binary = target / (sanitizer or "plain") / host[1] / "release" / "tessarr-fuzz"
                self.sanitizer = sanitizer
                return
            print(
                f"libFuzzer with sanitizer {sanitizer} cannot be built here:\n{built.stderr[-1500:]}", file=sys.stderr
            )
        print("the native engine is fuzzed without coverage (rust/tests/fuzz.rs)", flush=True)

    @property
    def engine(self) -> str:
        """What inputs come from."""
        return "libFuzzer" if self.binary else "mutation"

    def command(self, name: str, seconds: float, seed: int) -> tuple[list[str], dict[str, str]]:
        """What runs a target for a while, and its environment."""
        target = name.removeprefix(NATIVE)
        environment = {**os.environ, "FUZZ_TARGET": target}
        if self.binary is None:
            environment |= {"FUZZ_SECONDS": f"{seconds:.0f}", "FUZZ_SEED": str(seed)}
            manifest = str(RUST / "Cargo.toml")
            command = ["cargo", "test", "--release", "--test", "fuzz", "--manifest-path", manifest, "--", "--nocapture"]
            return command, environment
        corpus = self.out / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        # libdeflate includes one file several times, which gives the same constant several names.
        environment |= {"FUZZ_SEEDS": str(corpus), "ASAN_OPTIONS": "detect_odr_violation=0"}
        limits = [f"-max_total_time={max(1, round(seconds))}", f"-timeout={WITHIN_S}", "-rss_limit_mb=2048"]
        where = f"-artifact_prefix={self.out}/findings/{name}-"
        size = ["-max_len=20000", "-len_control=0", "-print_final_stats=1", f"-seed={seed % 2**31 or 1}"]
        return [str(self.binary), str(corpus), *limits, where, *size], environment

    def repeat(self, name: str, file: Path) -> int:
        """Run one input."""
        if self.binary is None:
            raise SystemExit("error: inputs of native targets are repeated with libFuzzer, which cannot be built here")
        command, environment = self.command(name, 1, 1)
        return subprocess.run([command[0], str(file)], env=environment, check=False).returncode


def native_outcome(text: str) -> tuple[int, int | None]:
    """Executions and covered edges, from what the fuzzer printed."""
    runs = re.findall(r"number_of_executed_units: (\d+)", text) or re.findall(r": (\d+) inputs in", text)
    edges = re.findall(r"cov: (\d+)", text)
    return sum(map(int, runs)), max(map(int, edges)) if edges else None


# -- targets in Python, each in a process of its own ---------------------------------------------------------------------


def limit_memory() -> None:
    """Cap the address space where the system can."""
    try:
        import resource
    except ImportError:
        return
    statm = Path("/proc/self/statm")
    pages = int(statm.read_text().split()[0]) if statm.exists() else 0
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY,) * 2)


def outcome(run: Any, data: bytes) -> tuple[str, str | None]:
    """Where the input ended, and the finding when it is one."""
    from tessarr.errors import TessarrError

    try:
        run(data)
    except TessarrError as error:
        tail = traceback.extract_tb(error.__traceback__)[-6:]
        return f"{type(error).__name__} {[(frame.filename, frame.lineno) for frame in tail]}", None
    except Exception as error:
        tail = traceback.extract_tb(error.__traceback__)[-3:]
        place = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(tail))
        return "finding", f"{type(error).__name__} at {place}: {str(error)[:200]}"
    return "values", None


def work(name: str, seconds: float, seed: int, out: Path) -> None:
    """Fuzz one target in Python in this process; says on standard output what came of it, a JSON line now and then."""
    from fuzz_targets import targets

    warnings.simplefilter("ignore")
    target = targets()[name]()
    rng = random.Random(f"{name} {seed}")
    current = out / f"current-{name}-{os.getpid()}"

    def late(*_: object) -> None:
        raise TimeoutError(f"not done within {WITHIN_S} s")

    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, late)
    limit_memory()
    pool, seen, reported = list(target.seeds), set(), set()
    executions, begin, told = 0, time.process_time(), 0.0
    while (used := time.process_time() - begin) < seconds:
        if used > told + 1:
            print(json.dumps({"executions": executions, "places": len(seen)}), flush=True)
            told = used
        data = target.damage(rng.choice(pool), rng)
        current.write_bytes(data)  # a crash leaves it
        if hasattr(signal, "SIGALRM"):
            signal.alarm(WITHIN_S)
        place, finding = outcome(target.run, data)
        if hasattr(signal, "SIGALRM"):
            signal.alarm(0)
        executions += 1
        if finding is None:
            if place not in seen:
                seen.add(place)
                if len(data) <= LONGEST:
                    pool.append(data)
            continue
        kind = finding.split(": ", 1)[0]
        if kind not in reported:
            reported.add(kind)
            print(json.dumps({"finding": finding, "file": saved(out, name, data)}), flush=True)
    print(json.dumps({"executions": executions, "places": len(seen)}), flush=True)
    current.unlink()


def saved(out: Path, name: str, data: bytes) -> str:
    """Keep an input; gives its path."""
    import hashlib

    file = out / "findings" / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
    file.write_bytes(data)
    return str(file)


# -- the campaign --------------------------------------------------------------------------------------------------------


class Campaign:
    """What all targets share."""

    def __init__(self, out: Path, seconds: float, seed: int) -> None:
        self.out, self.seconds, self.seed = out, seconds, seed
        self.native: Native | None = None

    def run(self, name: str) -> dict[str, Any]:
        """Run one target for its time, slice by slice, and write its log."""
        native = self.native if name.startswith(NATIVE) else None
        record: dict[str, Any] = {
            "target": name,
            "engine": native.engine if native else "mutation",
            "sanitizer": native.sanitizer if native else None,
            "seed": self.seed,
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "cpu_seconds": 0.0,
            "wall_seconds": 0.0,
            "executions": 0,
            "coverage": None,
            "findings": [],
        }
        begin, number = time.monotonic(), 0
        while record["cpu_seconds"] < self.seconds and len(record["findings"]) < MOST_FINDINGS:
            left = min(SLICE_S, self.seconds - record["cpu_seconds"])
            self.slice(name, native, left, self.seed + number, record)
            number += 1
            record["wall_seconds"] = round(time.monotonic() - begin, 1)
            self.log(name, record)
        print(summary(record), flush=True)
        return record

    def slice(self, name: str, native: Native | None, seconds: float, seed: int, record: dict[str, Any]) -> None:
        """Run a target for a slice, and add what came of it to its record."""
        if native is not None:
            command, environment = native.command(name, seconds, seed)
        else:
            command = [sys.executable, __file__, name, "--work", "--seconds", str(seconds), "--seed", str(seed)]
            command, environment = [*command, "--out", str(self.out)], dict(os.environ)
        before = set((self.out / "findings").glob(f"{name}-*"))
        text, status, cpu, pid = ended(command, environment, self.out)
        record["cpu_seconds"] = round(record["cpu_seconds"] + max(cpu, 0.1), 1)
        if native is not None:
            runs, edges = native_outcome(text)
            record["executions"] += runs
            record["coverage"] = max(edges or 0, record["coverage"] or 0) or None
            if status:
                files = sorted(str(file) for file in set((self.out / "findings").glob(f"{name}-*")) - before)
                said = re.findall(
                    r"^(?:SUMMARY: .*|.*panicked at.*|.*panics on.*|==\d+== ?ERROR: .*)$", text, re.MULTILINE
                )
                found = {"finding": (said or [text[-300:]])[0][:500], "file": files[0] if files else None}
                record["findings"].append(found)
                print(f"{name}: {found}", flush=True)
            return
        told = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        counts = [line for line in told if "executions" in line]
        record["executions"] += counts[-1]["executions"] if counts else 0
        record["coverage"] = max(record["coverage"] or 0, counts[-1]["places"] if counts else 0)
        new = [line for line in told if "finding" in line]
        current = self.out / f"current-{name}-{pid}"
        if status:
            data = current.read_bytes() if current.exists() else b""
            current.unlink(missing_ok=True)
            new.append(
                {"finding": f"the process ended with {status}: {text[-300:]}", "file": saved(self.out, name, data)}
            )
        known = {found["finding"].split(": ", 1)[0] for found in record["findings"]}
        for found in new:
            if found["finding"].split(": ", 1)[0] not in known:
                record["findings"].append(found)
                print(f"{name}: {found}", flush=True)

    def log(self, name: str, record: dict[str, Any]) -> None:
        """Put the run into the target's log, in place of what was logged of it before."""
        file = self.out / f"{name}.json"
        runs = json.loads(file.read_text())["runs"] if file.exists() else []
        runs = [run for run in runs if run["started"] != record["started"]] + [record]
        total = {key: round(sum(run[key] for run in runs), 1) for key in ("cpu_seconds", "executions")}
        findings = sum(len(run["findings"]) for run in runs)
        content = {"target": name, **total, "findings": findings, "runs": runs}
        temporary = file.with_suffix(".new")
        temporary.write_text(json.dumps(content, indent=1) + "\n")
        temporary.replace(file)


def ended(command: list[str], environment: dict[str, str], out: Path) -> tuple[str, int, float, int]:
    """Run a program; what it printed, its exit status, its seconds of processor time, and its process id.

    One that says nothing for long is ended: it hangs where no alarm reaches it.
    """
    output = out / f"output-{os.getpid()}-{time.monotonic_ns()}"
    with output.open("wb") as file:
        child = subprocess.Popen(command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT)
        before, last = -1.0, -1
        while True:
            pid, status, usage = _wait(child.pid, 3 * WITHIN_S)
            if pid:
                break
            # Paused and starved processes use no processor; hanging ones do.
            busy = _cpu(child.pid)
            size = output.stat().st_size
            if before >= 0 and size == last and busy - before > 2 * WITHIN_S:
                child.send_signal(signal.SIGABRT)
            before, last = busy, size
    child.returncode = os.waitstatus_to_exitcode(status)
    text = output.read_text(encoding="utf-8", errors="replace")
    output.unlink()
    return text, child.returncode, usage.ru_utime + usage.ru_stime, child.pid


def _wait(pid: int, seconds: float) -> tuple[int, int, Any]:
    """`os.wait4` with an end."""
    deadline = time.monotonic() + seconds
    while True:
        found = os.wait4(pid, os.WNOHANG)
        if found[0] or time.monotonic() > deadline:
            return found
        time.sleep(0.05)


def _cpu(pid: int) -> float:
    """Seconds of processor time that a process used so far; 0 where that cannot be told."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def summary(record: dict[str, Any]) -> str:
    """One line about a run."""
    found = f"{len(record['findings'])} FINDINGS" if record["findings"] else "clean"
    kind = record["engine"] + (f"+{record['sanitizer']}" if record["sanitizer"] else "")
    runs, seconds = record["executions"], record["cpu_seconds"]
    return (
        f"{record['target']:<32}{kind:<20}{seconds:>8.0f} s{runs:>14,} inputs  coverage {record['coverage']}  {found}"
    )


def all_names() -> list[str]:
    """Every target, by risk: native parsers, then what meets files first, then the rest."""
    from fuzz_targets import targets

    native = native_names() if (RUST / "fuzz").exists() and shutil.which("cargo") else []
    return [*native[:7], *list(targets())[:8], *native[7:], *list(targets())[8:]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", help="names or patterns; all when none is given")
    parser.add_argument("--list", action="store_true", help="print the names of the targets")
    parser.add_argument("--seconds", type=float, default=60.0, help="processor time for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once")
    parser.add_argument("--seed", type=int, default=None, help="where randomness begins; printed when not given")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "fuzz")
    parser.add_argument("--input", type=Path, default=None, help="run this one input of a target")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    out = options.out.absolute()
    (out / "findings").mkdir(parents=True, exist_ok=True)
    if options.work:
        work(options.targets[0], options.seconds, options.seed, out)
        return 0
    names = all_names()
    wanted = options.targets or ["*"]
    chosen = [name for name in names if any(fnmatch.fnmatchcase(name, pattern) for pattern in wanted)]
    unknown = [pattern for pattern in wanted if not fnmatch.filter(names, pattern)]
    if unknown:
        raise SystemExit(f"error: no target is called {', '.join(unknown)}; --list prints them")
    if options.list:
        print("\n".join(chosen))
        return 0
    seed = options.seed if options.seed is not None else int(time.time())
    campaign = Campaign(out, options.seconds, seed)
    if any(name.startswith(NATIVE) for name in chosen):
        campaign.native = Native(out)
    if options.input is not None:
        return repeat(campaign, chosen[0], options.input)
    print(
        f"{len(chosen)} targets, {options.seconds:.0f} s of processor time each, seed {seed}, logs in {out}", flush=True
    )
    with ThreadPoolExecutor(options.jobs) as pool:
        records = list(pool.map(campaign.run, chosen))
    findings = sum(len(record["findings"]) for record in records)
    print(f"{len(records)} targets, {sum(record['executions'] for record in records):,} inputs, {findings} findings")
    return int(findings > 0)


def repeat(campaign: Campaign, name: str, file: Path) -> int:
    """Run one input of one target."""
    if campaign.native is not None:
        return campaign.native.repeat(name, file)
    from fuzz_targets import targets

    place, finding = outcome(targets()[name]().run, file.read_bytes())
    print(finding or place)
    return int(finding is not None)


if __name__ == "__main__":
    sys.exit(main())

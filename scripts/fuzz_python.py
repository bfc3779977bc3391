"""Run the targets in Python for `scripts/fuzz.py`, each in a separate process."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzz_process import CORPUS, KEPT, ROOT, SMALL, WITHIN_S, alarm, ended, limit_memory

MEMORY = 2 * 2**30
"""Bytes that a target may take beyond what it holds when it starts."""
LONGEST = 2**20
"""Damaged inputs of so many bytes are damaged further."""
MOST = 3000
"""Inputs that one member damages further."""


def outcome(run: Any, data: bytes) -> tuple[str, str | None]:
    """Run an input; return where it ended, and the finding if there is one."""
    from tessarr.errors import TessarrError

    try:
        run(data)
    except TessarrError as error:
        tail = traceback.extract_tb(error.__traceback__)[-6:]
        # Problems of documents are gathered, and raised in one place; what they are about differs.
        said = re.sub(r"\[.*?\]|'.*?'|\".*?\"|got .*|[^a-z_ ]", "", str(error))[:200]
        return f"{type(error).__name__} {[(frame.filename, frame.lineno) for frame in tail]} {said}", None
    except Exception as error:
        tail = traceback.extract_tb(error.__traceback__)[-3:]
        place = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(tail))
        return "finding", f"{type(error).__name__} at {place}: {str(error)[:200]}"
    return "values", None


def corpus(name: str, folder: Path = CORPUS) -> dict[str, list[bytes]]:
    """Read the inputs of a target that are kept, by member, without their first lines."""
    file = folder / f"{name}.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    return {member: [base64.b85decode(data) for data in inputs] for member, inputs in found.items()}


def keep(name: str, members: list[Turns], folder: Path) -> None:
    """Write the corpus of a target: of the inputs that end alike the smallest one."""
    inputs = {
        member.name: sorted(member.smallest.values(), key=lambda data: (len(data), data))[:KEPT] for member in members
    }
    told = {member: [base64.b85encode(data).decode() for data in found] for member, found in inputs.items()}
    (folder / f"{name}.json").write_text(json.dumps(told, indent=0, sort_keys=True) + "\n")


class Turns:
    """Generate the inputs of one member: first its seeds unchanged, then damaged seeds and inputs that reached a new place."""

    def __init__(self, name: str, member: Any, rng: random.Random, known: Sequence[bytes] = ()) -> None:
        self.name, self.member, self.rng = name, member, rng
        self.seeds = [*member.seeds, *known]
        self.pool = list(self.seeds)
        self.seen: set[str] = set()
        self.smallest: dict[str, bytes] = {}
        """How an input ends, without the place → the smallest input that ends so."""
        self.executions, self.seconds = 0, 0.0

    def next(self) -> bytes:
        """Return the next input, without its first line."""
        if self.executions < len(self.seeds):
            return bytes(self.seeds[self.executions])
        return bytes(self.member.damage(self.rng.choice(self.pool), self.rng))

    def ran(self, data: bytes, place: str, finding: str | None, seconds: float) -> None:
        """Record the result of an input, and keep the input if it reached a new place."""
        self.executions += 1
        self.seconds += seconds
        end = re.sub(r"\[\(.*\)\]", "", place)
        if finding is None and len(data) <= SMALL and len(data) < len(self.smallest.get(end, bytes(SMALL + 1))):
            self.smallest[end] = data
        if finding is None and place not in self.seen:
            self.seen.add(place)
            if len(data) <= LONGEST and len(self.pool) < MOST:
                self.pool.append(data)


def work(name: str, seconds: float, seed: int, out: Path) -> None:
    """Fuzz one target in this process; print the results on standard output, as JSON lines.

    The member that had least time is next, so that slow inputs of one take nothing from the others.
    """
    from fuzz_targets import TARGETS

    warnings.simplefilter("ignore")
    target = TARGETS[name]()
    rng = random.Random(f"{name} {seed}")
    current = out / f"current-{name}-{os.getpid()}"
    limit_memory(MEMORY)
    known = corpus(name)
    members = [Turns(member, made, rng, known.get(member, ())) for member, made in target.members.items()]
    print(json.dumps({"missing": target.missing}))
    reported, begin, told = set(), time.process_time(), 0.0
    while (used := time.process_time() - begin) < seconds:
        if used > told + 1:
            tell(members)
            told = used
        member = min(members, key=lambda member: member.seconds)
        before = time.process_time()
        data = member.next()
        whole = member.name.encode() + b"\n" + data
        current.write_bytes(whole)  # a crash leaves it
        alarm(WITHIN_S)
        place, finding = outcome(member.member.run, data)
        alarm(0)
        member.ran(data, place, finding, time.process_time() - before)
        kind = finding and (member.name, finding.split(": ", 1)[0])
        if finding and kind not in reported:
            reported.add(kind)
            found = {"finding": finding, "member": member.name, "file": saved(out, name, whole)}
            print(json.dumps(found), flush=True)
    tell(members)
    (out / "corpus").mkdir(exist_ok=True)
    keep(name, members, out / "corpus")
    current.unlink()


def tell(members: list[Turns]) -> None:
    """Print the executions and seconds of every member so far."""
    counts = {member.name: [member.executions, round(member.seconds, 2)] for member in members}
    print(json.dumps({"members": counts, "places": sum(len(member.seen) for member in members)}), flush=True)


def saved(out: Path, name: str, data: bytes) -> str:
    """Save an input; return its path."""
    file = out / "findings" / f"{name}-{hashlib.sha256(data).hexdigest()[:16]}"
    file.write_bytes(data)
    return str(file)


def run_slice(name: str, seconds: float, seed: int, out: Path) -> tuple[float, dict[str, Any]]:
    """Run a target for a slice in a separate process; return its processor time and the results to add to its record."""
    command = [sys.executable, str(ROOT / "scripts" / "fuzz.py"), name, "--work", "--out", str(out)]
    ran = ended([*command, "--seconds", str(seconds), "--seed", str(seed)], dict(os.environ), out)
    told = [json.loads(line) for line in ran.text.splitlines() if line.startswith("{")]
    counts: dict[str, Any] = next((line for line in reversed(told) if "members" in line), {"members": {}, "places": 0})
    found = [line for line in told if "finding" in line]
    current = out / f"current-{name}-{ran.pid}"
    if ran.status:
        data = current.read_bytes() if current.exists() else b""
        current.unlink(missing_ok=True)
        member = data.partition(b"\n")[0].decode() or None
        said = f"the process ended with {ran.status}: {ran.text[-300:]}"
        found.append({"finding": said, "member": member, "file": saved(out, name, data)})
    executions = sum(runs for runs, _ in counts["members"].values())
    missing: dict[str, Any] = next((line["missing"] for line in told if "missing" in line), {})
    record = {"executions": executions, "coverage": counts["places"], "missing": missing}
    return ran.cpu, {**record, "members": counts["members"], "findings": found}


def repeat(name: str, file: Path) -> int:
    """Run one input of one target."""
    from fuzz_targets import TARGETS

    member, found, data = TARGETS[name]().find(file.read_bytes())
    place, finding = outcome(found.run, data)
    print(f"{name}, member {member}: {finding or place}")
    return int(finding is not None)

"""The short form of `scripts/campaigns/power.py`: the power is cut at some moments of every workload."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from tests.faults.disk import Disk
from tests.faults.power import PowerBench, key_of
from tests.faults.workloads import WORKLOADS, Workload
from tests.stores.tracing import strace

pytestmark = pytest.mark.filterwarnings("ignore")


DURABLE = [workload for workload in WORKLOADS if workload.is_durable]


BY_TURNS = [
    pytest.param(workload, ("native", "reference")[at % 2], id=workload.name) for at, workload in enumerate(DURABLE)
]
"""Each workload with one of the engines: to record a program takes longer than to judge its states. The campaign has both."""


@pytest.mark.parametrize(("workload", "engine"), BY_TURNS)
def test_a_power_cut_leaves_old_or_new_values_and_what_had_returned(workload: Workload, engine: str) -> None:
    with closing(PowerBench(workload, engine, strace())) as bench:
        moments = [*bench.moments()]
        wrong, seen = [], set()
        for moment in (*moments[:: max(1, len(moments) // 3)], moments[-1]):
            states = [*moment.states]
            most = 12 if moment is moments[-1] else 6
            for name, tree in states[:: max(1, len(states) // most)]:
                key = (key_of(tree), moment is moments[-1])
                if key not in seen:
                    seen.add(key)
                    told = bench.judge_state(tree, is_end=moment is moments[-1])
                    wrong += [f"after call {moment.number} ({moment.call}), {name}: {told}"] if told else []
    assert wrong == []
    assert len(seen) > 3


def test_the_disk_loses_what_was_not_synced(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"0")
    disk = Disk(tmp_path)
    file = disk.create("new")
    disk.write(file, b"1234", 0)
    states = dict(disk.states())
    assert states["posix, nothing unsynced"] == {"old": b"0"}
    assert states["posix, everything"] == {"old": b"0", "new": b"1234"}
    assert states["posix, change 0 alone"] == {"old": b"0", "new": b""}
    assert states["ext4, 1 changes and half of the content"] == {"old": b"0", "new": b"12"}
    disk.sync(file)
    assert dict(disk.states())["posix, change 0 alone"] == {"old": b"0", "new": b"1234"}
    disk.sync(disk.root)
    disk.rename("new", "old")
    names = {name: tree for name, tree in disk.states() if name.startswith("posix")}
    assert names["posix, nothing unsynced"] == {"old": b"0", "new": b"1234"}
    assert names["posix, everything"] == {"old": b"1234"}
    disk.sync_all()
    assert {key_of(tree) for _, tree in disk.states()} == {key_of({"old": b"1234"})}

"""Count the processors that this process may use, by its affinity, the quota of its control groups, and the settings."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path


def processors() -> int:
    """Return how many threads may compute at once."""
    from tessarr.settings import config

    limit = config.get("threading.max_workers", None)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, quota(), limit or available))


@cache
def quota(own: Path = Path("/proc/self/cgroup"), mount: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the CPU quota of this process's control groups in whole processors; a large number without a quota.

    `own` lists the groups (of cgroup v1 and v2); the quota of every parent group applies too.
    """
    least = float("inf")
    for line in _text(own).splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        top = mount if not controllers else next(filter(Path.is_dir, (mount / controllers, mount / "cpu")), mount)
        place = top / group.lstrip("/")
        for folder in (place, *place.parents):
            least = min(least, _cgroup_limit(folder))
            if folder == top:
                break
    return max(1, int(min(least, 1 << 20)))


def _cgroup_limit(folder: Path) -> float:
    limit, period = [*_text(folder / "cpu.max").split(), "", ""][:2]
    if not limit:
        limit, period = _text(folder / "cpu.cfs_quota_us").strip(), _text(folder / "cpu.cfs_period_us").strip()
    return int(limit) / int(period) if limit.isdigit() and period.isdigit() and int(period) else float("inf")


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii")
    except (OSError, ValueError):
        return ""

"""Count the processors that this process may use, by its affinity, the quota of its control groups, and the settings."""

from __future__ import annotations

import os
from functools import cache


def processors() -> int:
    """Return how many threads may compute at once."""
    from tessarr.settings import config

    limit = config.get("threading.max_workers", None)
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(available, quota(), limit or available))


@cache
def quota(own: str = "/proc/self/cgroup", mount: str = "/sys/fs/cgroup") -> int:
    """Return the CPU quota of this process's control groups in whole processors; a large number without a quota.

    `own` lists the groups (of cgroup v1 and v2); the quota of every parent group applies too.
    """
    least = float("inf")
    for line in _text(own).splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        own_mounts = (f"{mount}/{controllers}", f"{mount}/cpu") if controllers else ()
        top = next(filter(os.path.isdir, own_mounts), mount)
        names = [name for name in group.split("/") if name]
        for depth in range(len(names) + 1):
            least = min(least, _cgroup_limit("/".join([top, *names[:depth]])))
    return max(1, int(min(least, 1 << 20)))


def _cgroup_limit(folder: str) -> float:
    limit, period = [*_text(f"{folder}/cpu.max").split(), "", ""][:2]
    if not limit:
        limit, period = _text(f"{folder}/cpu.cfs_quota_us").strip(), _text(f"{folder}/cpu.cfs_period_us").strip()
    return int(limit) / int(period) if limit.isdigit() and period.isdigit() and int(period) else float("inf")


def _text(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except (OSError, ValueError):
        return ""

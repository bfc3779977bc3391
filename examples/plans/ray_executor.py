"""Carry out a saved plan on a Ray cluster.

python examples/plans/ray_executor.py PLAN [ADDRESS]
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

import ray

import tessarr.plan


class RayExecutor(Executor):
    """Runs each call as a task of Ray."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call to the cluster."""
        return ray.remote(max_retries=3)(fn).remote(*args, **kwargs).future()


if __name__ == "__main__":
    ray.init(*sys.argv[2:])
    slots = int(ray.cluster_resources()["CPU"])
    print(tessarr.plan.load(sys.argv[1]).run(RayExecutor(), slots=slots))

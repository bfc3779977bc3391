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


@ray.remote
def _call(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call what is a callable object, not a function, as a task."""
    return fn(*args, **kwargs)


class RayExecutor(Executor):
    """Runs each call as a task of Ray."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Send a call to the cluster."""
        sent = _call.options(name=getattr(fn, "__name__", "task"), max_retries=3)
        return sent.remote(fn, *args, **kwargs).future()


if __name__ == "__main__":
    ray.init(*sys.argv[2:])
    slots = int(ray.cluster_resources()["CPU"])
    print(tessarr.plan.load(sys.argv[1]).run(RayExecutor(), slots=slots))

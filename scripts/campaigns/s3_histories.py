"""The histories of `histories` over an S3 server alone, behind the proxy that breaks answers: several run beside each other."""

from __future__ import annotations

from campaigns import histories

SUMMARY = "8 processes over an S3 server behind a proxy that breaks answers, killed and stopped at random"
_OPERATIONS = 300
"""Of each process: most of a short history is the start of its processes, and the wait for the last one."""
_FIRST = 1 << 21
"""Seeds are others than those of `histories` and `local_histories`."""

slices, repeat = histories.alone("s3", _FIRST, _OPERATIONS)

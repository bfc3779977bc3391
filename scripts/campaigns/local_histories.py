"""The histories of `histories` over local files alone: they need no server, and several run beside each other."""

from __future__ import annotations

from campaigns import histories

SUMMARY = "8 processes over local files, killed and stopped at random: no server is needed"
_FIRST = 1 << 20
"""Seeds are others than those of `histories`."""

slices, repeat = histories.alone("local", _FIRST)

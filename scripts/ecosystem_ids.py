"""Pair tests of two runs of one suite whose ids differ because pytest writes parameters into them.

An id holds the ``repr`` of parameters that are objects: ``<class 'zarr.core.dtype.npy.bool.Bool'>``,
``<function ones at 0x7f…>``. With tessarr in place the modules and addresses in it are others; the test is the same one.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable

_ADDRESS = re.compile(r"\b0x[0-9a-f]{8,}\b")
_NAMED = re.compile(r"<(?:[\w.]+\.)?(class|function|bound method|enum|module) '?(?:\w+\.)*(\w+)'?")


def without_addresses(test: str) -> str:
    """Replace addresses in an id, which differ from run to run."""
    return _ADDRESS.sub("0x…", test)


def normalized(test: str) -> str:
    """Remove addresses, and the modules of classes and functions, from the parameters in an id."""
    name, bracket, parameters = test.partition("[")
    return name + bracket + _NAMED.sub(r"<\1 \2", without_addresses(parameters))


def paired(before: Iterable[str], after: Iterable[str]) -> dict[str, str]:
    """Id in the first run → id of the same test in the second, for the tests that are in both.

    A test is paired with the one of the same id; else with the one whose id is equal without addresses and modules, in the
    order of collection where several are. What then remains of a function is paired by position if it is as much in both
    runs, because the parameters are written in the suite.
    """
    first, second = list(before), dict.fromkeys(after)
    pairs = {test: test for test in first if test in second}
    for key in (normalized, _function):
        ours, theirs = _groups(first, set(pairs), key), _groups(second, set(pairs.values()), key)
        for name, tests in ours.items():
            if len(tests) == len(theirs.get(name, [])):
                pairs |= zip(tests, theirs[name], strict=True)
    return pairs


def _function(test: str) -> str:
    return test.partition("[")[0]


def _groups(tests: Iterable[str], known: set[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        if test not in known:
            found[key(test)].append(test)
    return found

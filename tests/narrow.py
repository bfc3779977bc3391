"""Narrow a result to the type that a test expects, for readers and type checkers: another type fails the test there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tessarr.core.array import Array
from tessarr.core.group import Group
from tessarr.stores.buffers import byte_view
from tessarr.types import Buffer


def array_of(node: object) -> Array:
    """Return an array that `open`, or a group by a name, may also answer with a group.

    >>> import tessarr
    >>> array_of(tessarr.open(tessarr.zeros(3).store)).shape
    (3,)
    """
    assert isinstance(node, Array), node
    return node


def group_of(node: object) -> Group:
    """Return a group that `open`, or a group by a name, may also answer with an array.

    >>> import tessarr
    >>> list(group_of(tessarr.open({}, mode="w")))
    []
    """
    assert isinstance(node, Group), node
    return node


def bytes_of(value: Buffer | None) -> bytes:
    """Return the bytes of a value that a store must have.

    >>> bytes_of(bytearray(b"x"))
    b'x'
    """
    assert value is not None, "there is no such value"
    return bytes(byte_view(value))


def numpy_of(values: object) -> npt.NDArray[Any]:
    """Return an array of NumPy's where a scalar, or another package's kind of array, would be allowed.

    >>> numpy_of(np.arange(3)).tolist()
    [0, 1, 2]
    """
    assert isinstance(values, np.ndarray), values
    return values


def calls(*functions: Callable[[], object]) -> tuple[Callable[[], object], ...]:
    """Return functions of different results as functions of one type, for a test that calls one after the other.

    >>> [call() for call in calls(lambda: 1, lambda: "x")]
    [1, 'x']
    """
    return functions

"""Random selections that NumPy and tessarr understand alike."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np

Shape = tuple[int, ...]
Indices = tuple[np.ndarray[Any, np.dtype[np.intp]], ...]


def selection(rng: Random, shape: Shape, *, at_least_one: bool = False) -> tuple[Any, ...]:
    """Indices and slices; with an ellipsis in the place of some axes, or fewer of them than axes."""
    parts: list[Any] = [_part(rng, length) for length in shape]
    if rng.random() < 0.2:
        at = rng.randint(0, len(parts))
        return (*parts[:at], Ellipsis, *parts[at + rng.randint(0, len(parts) - at) :])
    if at_least_one and all(isinstance(part, int) for part in parts):
        parts[0] = slice(None)
    return tuple(parts if rng.random() < 0.8 else parts[: rng.randint(1, len(parts))])


def _part(rng: Random, length: int) -> Any:
    if length and rng.random() < 0.3:
        return rng.randint(-length, length - 1)
    begin, end = (rng.choice([None, rng.randint(-length - 1, length + 1)]) for _ in range(2))
    return slice(begin, end, rng.choice([None, 1, 1, 2, 3]))


def outer(rng: Random, shape: Shape, *, unique: bool) -> Indices:
    """Indices for each axis; without repetition for writes, where the order of equal ones would matter."""
    return tuple(_indices(rng, length, rng.randint(0, length), unique) for length in shape)


def points(rng: Random, shape: Shape, *, unique: bool) -> Indices:
    """Some points, as indices for each axis."""
    size = int(np.prod(shape))
    flat = _indices(rng, size, rng.randint(0, min(size, 8)), unique)
    return tuple(np.asarray(axis) for axis in np.unravel_index(flat, shape)) if size else tuple(flat for _ in shape)


def _indices(rng: Random, length: int, count: int, unique: bool) -> np.ndarray[Any, np.dtype[np.intp]]:
    if unique:
        return np.array(rng.sample(range(length), count), np.intp)
    return np.array([rng.randrange(length) for _ in range(count)], np.intp)

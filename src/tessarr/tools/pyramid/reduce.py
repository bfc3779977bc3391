"""Reduce blocks of elements to one element: mean, max, mode, nearest, Gaussian. Pure functions on NumPy arrays.

>>> import numpy as np
>>> reduce(np.array([[1, 2, 9], [3, 4, 9]]), (2, 2), "mean")
array([[2, 9]])
>>> reduce(np.array([5, 5, 7, 1, 2]), (3,), "mode")
array([5, 1])

Blocks at the far edges hold the remaining elements of the array; elements beyond the edge are ignored. Integer means are
exact and rounded half to even; floats are summed as float64, and so are all numbers for "gaussian" (integers beyond 2**53
are then exact to a relative 1e-15). `missing` is a value (NaN, a fill value) to ignore; the result of a block with only
such values is `missing`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import ceil, prod
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from tessarr.errors import UnsupportedOperationError
from tessarr.types import AnyArray, AnyDType

Method: TypeAlias = Literal["mean", "max", "mode", "nearest", "gaussian"]
METHODS: tuple[Method, ...] = ("mean", "max", "mode", "nearest", "gaussian")

_Values: TypeAlias = AnyArray
_Missing: TypeAlias = "float | int | None"


def kind_of(dtype: AnyDType) -> str:
    """Return NumPy's kind; for the small number types of ml_dtypes that of the numbers they represent."""
    if dtype.kind == "V" and dtype.names is None:
        name = dtype.name
        return "f" if "float" in name else "u" if name.startswith("uint") else "i" if name.startswith("int") else "V"
    return dtype.kind


def check_method(method: str, dtype: AnyDType, *, labels: bool = False) -> None:
    """Check a method. Raises `ValueError` for an unknown method or one that would invent labels,
    `UnsupportedOperationError` for a data type that the method does not support."""
    if method not in METHODS:
        raise ValueError(f"unknown method {method!r}; known: {', '.join(METHODS)}")
    if labels and method not in ("mode", "nearest"):
        raise ValueError(f"{method} of labels gives labels that do not exist; use mode or nearest")
    kinds = {"mean": "biufc", "gaussian": "biufc", "max": "biufmM", "mode": "biufmM"}.get(method)
    if kinds is not None and kind_of(dtype) not in kinds:
        raise UnsupportedOperationError(f"{method} does not support {dtype}", hint="Use method='nearest'")


def check_missing(missing: _Missing, dtype: AnyDType) -> None:
    """Check a missing value. Raises `ValueError` for one that the data type cannot hold; NaN is allowed for
    integers.
    """
    if missing is None or missing != missing or kind_of(dtype) not in "iu" or dtype.kind == "V":
        return
    limits = np.iinfo(dtype)
    if int(missing) != missing or not limits.min <= missing <= limits.max:
        raise ValueError(f"{dtype} cannot hold the missing value {missing}")


def halo(method: str, factor: int) -> tuple[int, int]:
    """Return how many elements are needed before and after the blocks of a piece, along an axis with this factor."""
    if method != "gaussian" or factor == 1:
        return 0, 0
    taps = _taps(factor)
    return -taps[0][0], taps[-1][0] - (factor - 1)


def reduce(
    values: _Values, factors: tuple[int, ...], method: Method, *, missing: _Missing = None,
    before: tuple[int, ...] | None = None, length: tuple[int, ...] | None = None,
) -> _Values:  # fmt: skip
    """Reduce every block of `factors` elements to one; the dtype stays.

    For "gaussian" `values` may begin with `before` elements per axis that only contribute their weight, and the result has
    `length` elements per axis; other methods need neither. Memory: a few times that of `values`.
    """
    before = before or (0,) * values.ndim
    length = length or tuple(
        -(-(size - skip) // factor) for size, skip, factor in zip(values.shape, before, factors, strict=True)
    )
    if method == "nearest":
        return values[tuple(slice(None, None, factor) for factor in factors)].copy()
    if not values.dtype.isnative:
        native = values.astype(values.dtype.newbyteorder("="))
        return reduce(native, factors, method, missing=missing, before=before, length=length).astype(values.dtype)
    if values.dtype.kind == "V" and kind_of(values.dtype) != "V":
        wide = values.astype(np.float64 if kind_of(values.dtype) == "f" else np.int64)
        return reduce(wide, factors, method, missing=missing, before=before, length=length).astype(values.dtype)
    if method == "gaussian":
        return _gaussian(values, factors, missing, before, length)
    out = np.empty(length, values.dtype)
    for source, target, block in _parts(values.shape, factors):
        out[target] = _REDUCE[method](values[source], block, missing)
    return out


def _parts(
    shape: tuple[int, ...], factors: tuple[int, ...]
) -> Iterator[tuple[tuple[slice, ...], tuple[slice, ...], tuple[int, ...]]]:
    """Yield the parts of an array whose blocks are all complete or all cut alike: source, target, shape of a block."""
    axes = []
    for size, factor in zip(shape, factors, strict=True):
        whole, rest = divmod(size, factor)
        cuts = [(slice(0, whole * factor), slice(0, whole), factor)] if whole else []
        axes.append(cuts + ([(slice(whole * factor, size), slice(whole, whole + 1), rest)] if rest else []))
    for part in product(*axes):
        yield tuple(p[0] for p in part), tuple(p[1] for p in part), tuple(p[2] for p in part)


def _split(values: _Values, block: tuple[int, ...]) -> _Values:
    """Return a view with two axes for each: the block, and the position in it."""
    shape: list[int] = []
    for size, factor in zip(values.shape, block, strict=True):
        shape += [size // factor, factor]
    return values.reshape(shape)


def _inner(ndim: int) -> tuple[int, ...]:
    return tuple(range(1, 2 * ndim, 2))


def _combined(
    combine: np.ufunc, values: _Values, block: tuple[int, ...], dtype: npt.DTypeLike | None = None
) -> _Values:  # fmt: skip
    """Combine the elements of every block, axis by axis, in `dtype`: several times as fast as NumPy over all axes at once.

    The first axis comes first: what is combined there is contiguous, and the others are shorter then.
    """
    for axis, factor in enumerate(block):
        before = (slice(None),) * axis
        parts = [values[(*before, slice(first, None, factor))] for first in range(factor)]
        if factor > 1:
            values = combine(parts[0], parts[1], dtype=dtype)
        for part in parts[2:]:
            combine(values, part, out=values)
    return values


def is_missing(values: _Values, missing: _Missing) -> npt.NDArray[np.bool_] | None:
    """Compare `values` with `missing`, NaN included; ``None`` when none can be equal."""
    if missing is None:
        return None
    if missing != missing:
        return np.isnan(values) if kind_of(values.dtype) in "fc" else None
    return np.asarray(values == missing)


# -- mean --------------------------------------------------------------------------------------------------------------


def _mean(values: _Values, block: tuple[int, ...], missing: _Missing) -> _Values:
    inner, dtype = _inner(values.ndim), values.dtype
    absent = is_missing(values, missing)
    count: Any = prod(block)
    if absent is not None:
        count = _split(~absent, block).sum(axis=inner, dtype=np.int64)
        values = np.where(absent, np.zeros((), dtype), values)
    exact = kind_of(dtype) in "biu"
    if exact and dtype.itemsize < 8 and absent is None:
        return _cast(_mean_of_short(values, block), dtype)
    divisor = np.maximum(count, 1)
    if exact and dtype.itemsize == 8:
        mean = _mean_of_long(values, block, divisor)
    elif exact:
        mean = _half_to_even(_split(values.astype(np.int64), block).sum(axis=inner), divisor)
    else:
        wide = np.complex128 if dtype.kind == "c" else np.float64
        with np.errstate(over="ignore", invalid="ignore"):  # infinities are valid results
            mean = _combined(np.add, values, block, wide) / divisor
            if np.isinf(mean).any():  # the sum may have overflowed where the mean does not
                parts = _split(values.astype(wide, copy=False), block)
                shares = parts / (divisor if np.ndim(divisor) == 0 else np.expand_dims(divisor, inner))
                mean = np.where(np.isinf(mean), shares.sum(axis=inner), mean)
    result = _cast(mean, dtype)
    if absent is not None:
        result[np.broadcast_to(count == 0, result.shape)] = missing
    return result


def _mean_of_short(values: _Values, block: tuple[int, ...]) -> _Values:
    """Compute the mean of integers in the narrowest type that holds their sums."""
    count, dtype = prod(block), values.dtype
    least, most = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    wide = np.min_scalar_type((least - 1) * count if least else (most + 1) * count)
    total = _combined(np.add, values, block, wide)
    if count == 1:
        return total
    shift = count.bit_length() - 1
    if count != 1 << shift:
        return np.asarray(_half_to_even(total, count))
    total += (total >> shift) & 1  # half of a block more or less is rounded to the even number
    total += (count >> 1) - 1
    total >>= shift
    return total


def _half_to_even(total: Any, divisor: Any) -> Any:
    whole, rest = np.divmod(total, np.asarray(divisor).astype(total.dtype))
    return whole + _round_up(whole, rest, divisor)


def _round_up(whole: Any, rest: Any, divisor: Any) -> object:
    twice, limit = rest * 2, np.asarray(divisor).astype(rest.dtype)
    return ((twice > limit) | ((twice == limit) & (whole % 2 == 1))).astype(whole.dtype)


def _mean_of_long(values: _Values, block: tuple[int, ...], divisor: object) -> Any:
    """Compute the mean of 64-bit integers, whose sum may overflow, from quotients and remainders."""
    inner = _inner(values.ndim)
    per = np.asarray(divisor).astype(values.dtype)
    parts = _split(values, block)
    spread = per if per.ndim == 0 else np.expand_dims(per, inner)
    quotient, remainder = np.divmod(parts, spread)
    more, rest = np.divmod(remainder.sum(axis=inner, dtype=values.dtype), per)
    whole = quotient.sum(axis=inner, dtype=values.dtype) + more
    return whole + _round_up(whole, rest, divisor)


def _cast(values: _Values, dtype: AnyDType) -> _Values:
    if dtype.kind == "b":
        return values >= 1
    if dtype.kind in "iu" and np.asarray(values).dtype.kind == "f":
        return _nearest_integer(np.asarray(values), dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(values).astype(dtype)


def _nearest_integer(values: _Values, dtype: AnyDType) -> _Values:
    """Convert whole floats to integers; a rounding error beyond the largest 64-bit integer gives that integer."""
    limits = np.iinfo(dtype)
    high, low = values >= float(limits.max), values <= float(limits.min)
    result = np.where(high | low, 0, values).astype(dtype)
    result[high], result[low] = limits.max, limits.min
    return result


# -- max and mode ------------------------------------------------------------------------------------------------------


def _max(values: _Values, block: tuple[int, ...], missing: _Missing) -> _Values:
    inner, dtype = _inner(values.ndim), values.dtype
    absent = is_missing(values, missing)
    if absent is None:
        return _combined(np.maximum, values, block)
    # Absent elements get the least present value, which changes no maximum.
    if absent.all():
        return np.full([size // factor for size, factor in zip(values.shape, block, strict=True)], missing, dtype)
    filled = np.where(absent, np.fmin.reduce(values[~absent]), values)
    result = np.asarray(_split(filled, block).max(axis=inner))
    result[_split(absent, block).all(axis=inner)] = missing
    return result


def _mode(values: _Values, block: tuple[int, ...], missing: _Missing) -> _Values:
    """Return the most frequent value; of equally frequent ones the least."""
    ndim = values.ndim
    outer = tuple(range(0, 2 * ndim, 2))
    blocks = _split(values, block).transpose((*outer, *_inner(ndim))).reshape(
        *(size // factor for size, factor in zip(values.shape, block, strict=True)), prod(block)
    )  # fmt: skip
    ordered = np.sort(blocks, axis=-1)
    absent = is_missing(ordered, missing)
    counts = (np.ones(ordered.shape, bool) if absent is None else ~absent).astype(np.int64)
    best = ordered[..., 0].copy()
    run = counts[..., 0].copy()
    longest = run.copy()
    if absent is not None:
        best[run == 0] = missing
    for at in range(1, ordered.shape[-1]):
        value, one_before = ordered[..., at], ordered[..., at - 1]
        same = value == one_before
        if ordered.dtype.kind in "fmM":
            same |= (value != value) & (one_before != one_before)  # NaN and NaT equal themselves here
        run = np.where(same, run, 0) + counts[..., at]
        longer = run > longest
        best = np.where(longer, value, best)
        longest = np.where(longer, run, longest)
    return np.asarray(best)


_REDUCE: dict[str, Callable[[_Values, tuple[int, ...], _Missing], _Values]] = {
    "mean": _mean, "max": _max, "mode": _mode,
}  # fmt: skip


# -- Gaussian ----------------------------------------------------------------------------------------------------------


def _taps(factor: int) -> list[tuple[int, float]]:
    """List offsets from the first element of a block, and their weights: σ is a third of the factor, cut off at 4 σ."""
    centre, sigma = (factor - 1) / 2, factor / 3
    reach = range(ceil(centre - 4 * sigma), int(centre + 4 * sigma) + 1)
    weights = [float(np.exp(-((offset - centre) ** 2) / (2 * sigma**2))) for offset in reach]
    return [(offset, weight / sum(weights)) for offset, weight in zip(reach, weights, strict=True)]


def _gaussian(
    values: _Values, factors: tuple[int, ...], missing: _Missing, before: tuple[int, ...], length: tuple[int, ...]
) -> _Values:
    """Compute weighted means around the centre of each block, axis by axis; elements beyond the edge have no weight."""
    dtype = values.dtype
    absent = is_missing(values, missing)
    weight = np.ones((), np.float64) if absent is None else (~absent).astype(np.float64)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    total = values.astype(wide) if absent is None else np.where(absent, 0, values.astype(wide))
    # Scale floats near the largest one down by a power of two, so that no weighted sum overflows.
    scale = 2.0**-8 if total.size and kind_of(dtype) in "fc" and np.abs(total).max() > 1e300 else 1.0
    total = total * scale if scale != 1.0 else total
    if absent is None:
        weight = np.ones((1,) * values.ndim)
    for axis, factor in enumerate(factors):
        size = values.shape[axis]
        total = _smooth(total, axis, factor, before[axis], length[axis], size)
        if absent is None:
            ones = np.ones([size if other == axis else 1 for other in range(values.ndim)])
            weight = weight * _smooth(ones, axis, factor, before[axis], length[axis], size)
        else:
            weight = _smooth(weight, axis, factor, before[axis], length[axis], size)
    empty = weight <= 1e-12
    mean = total / np.where(empty, 1, weight)
    mean = _unscaled(mean, scale) if scale != 1.0 else mean
    result = _cast(np.rint(mean), dtype) if kind_of(dtype) in "iu" else _cast_float(mean, dtype)
    if absent is not None:
        result[np.broadcast_to(empty, result.shape)] = missing
    return result


def _unscaled(mean: _Values, scale: float) -> _Values:
    """Undo the scaling of means; a rounding error beyond the largest number gives that number."""
    limit = np.finfo(np.float64).max
    with np.errstate(over="ignore", invalid="ignore"):
        real = mean / scale
    if mean.dtype.kind == "c":
        return real
    return np.where(np.isinf(real) & np.isfinite(mean), np.copysign(limit, mean), real)


def _cast_float(mean: _Values, dtype: AnyDType) -> _Values:
    return mean > 0.5 if dtype.kind == "b" else _cast(mean, dtype)


def _smooth(values: _Values, axis: int, factor: int, before: int, length: int, size: int) -> _Values:
    if factor == 1:
        return values[(slice(None),) * axis + (slice(before, before + length),)]
    shape = list(values.shape)
    shape[axis] = length
    out = np.zeros(shape, values.dtype)
    for offset, weight in _taps(factor):
        first = before + offset  # the element that output 0 uses at this tap
        skip = max(0, (factor - 1 - first) // factor)
        stop = min(length, (size - first + factor - 1) // factor)
        if stop <= skip:
            continue
        begin = first + skip * factor
        taken = values[(slice(None),) * axis + (slice(begin, begin + (stop - skip - 1) * factor + 1, factor),)]
        out[(slice(None),) * axis + (slice(skip, stop),)] += taken * weight
    return out

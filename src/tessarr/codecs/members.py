"""Check the members of a codec's configuration, and report every problem rather than the first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from tessarr.common.warn import warn_as_zarr_python
from tessarr.errors import MetadataValidationError, Problem, ZarrDeprecationWarning
from tessarr.types import JSON

Check = Callable[[Any], str | None]
"""Describes what is wrong with a value; ``None`` for a valid value."""


def integer(low: int, high: int | None = None) -> Check:
    """Accept integers within `low` … `high` inclusive; booleans and floats such as ``5.0`` are not integers."""

    def check(value: object) -> str | None:
        if type(value) is not int:
            return f"must be an integer, got {value!r}"
        if value < low or (high is not None and value > high):
            return f"must be {f'at least {low}' if high is None else f'{low} to {high}'}, got {value}"
        return None

    return check


def choice(*words: str) -> Check:
    """Accept one of `words`."""

    def check(value: object) -> str | None:
        known = isinstance(value, str) and value in words
        return None if known else f"must be one of {', '.join(map(repr, words))}; got {value!r}"

    return check


def boolean(value: object) -> str | None:
    """Accept ``true`` and ``false``, not 0 or 1."""
    return None if isinstance(value, bool) else f"must be true or false, got {value!r}"


def optional(check: Check) -> Check:
    """Accept what `check` accepts, or null."""
    return lambda value: None if value is None else check(value)


def read_members(
    codec: str,
    configuration: Mapping[str, JSON],
    checks: Mapping[str, Check],
    *,
    required: tuple[str, ...] = (),
    kind: str = "codec",
) -> dict[str, Any]:
    """Validate and return the members of `configuration`; `kind` says what `codec` names, in messages.

    Raises `MetadataValidationError` listing unknown, missing and wrong members.
    """
    problems = [
        Problem((name,), "unknown", f"unknown member of the {codec} {kind}")
        for name in configuration
        if name not in checks
    ]
    problems += [Problem((name,), "missing", "is required") for name in required if name not in configuration]
    known = {name: value for name, value in configuration.items() if name in checks}
    problems += _wrong(known, checks)
    if problems:
        facts = {"codec": codec} if kind == "codec" else {}
        raise MetadataValidationError(f"invalid {codec} {kind}", problems, **facts)
    return known


def check_members(codec: str, values: Mapping[str, JSON], checks: Mapping[str, Check]) -> None:
    """Refuse values that a document could not hold either. Raises `MetadataValidationError` (a `ValueError`)."""
    problems = _wrong(values, checks)
    if problems:
        raise MetadataValidationError(f"invalid {codec} codec", problems, codec=codec)


def _wrong(values: Mapping[str, JSON], checks: Mapping[str, Check]) -> list[Problem]:
    found = ((name, checks[name](value)) for name, value in values.items())
    return [Problem((name,), "value", message) for name, message in found if message is not None]


def plain_value(value: object, codec: str = "", name: str = "") -> Any:
    """Return the value of an enumeration member (zarr-python's ``BloscShuffle.shuffle``), or `value` itself.

    For a member of another package's enumeration zarr-python warns, naming `codec` and its argument `name`.
    """
    if not isinstance(value, Enum):
        return value
    if codec and not type(value).__module__.startswith("tessarr."):
        message = (
            f"Passing an enum to {codec}(..., {name}=...) is deprecated; pass the equivalent literal string instead."
        )
        warn_as_zarr_python(message, ZarrDeprecationWarning)
    return value.value

"""Read and write JSON as Zarr documents need it: strict on writing, exact on reading.

Reading keeps integers exact and float literals as their decimal text (`FloatLiteral`), so that a fill value is rounded
once, from the text, to its data type (v3 core, "Fill value"). Duplicate keys are an error in metadata, where readers
differ in which one they use; in user attributes the last one wins. Bare
``NaN``/``Infinity`` tokens are not JSON; `loads` refuses them unless asked.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn, Self, TypeAlias

import numpy as np

from tessarr.errors import InvalidJSONError, MetadataValidationError, Problem


class FloatLiteral(float):
    """A float that keeps the decimal text from which it was read."""

    text: str

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return FloatLiteral, (self.text,)


_HOW_TO_READ = (
    'Write it as a string, such as "NaN"; to read it as other Zarr libraries do, set '
    'tessarr.config.set({"attributes.allow_nan": True})'
)


def _refuse(token: str) -> NoReturn:
    raise MetadataValidationError("invalid JSON", got=f"the bare token {token}", hint=_HOW_TO_READ)


Loc: TypeAlias = tuple[str | int, ...]
"""A location in a document: member names and list positions."""


class _Ambiguous(dict[str, Any]):
    """An object some of whose keys occur more than once in the text; it holds the last value of each."""

    keys_repeated: list[str]


class _AmbiguousError(Exception):
    """An object repeats a key."""


def _unambiguous(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _AmbiguousError
    return found


def _marked(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    ambiguous = _Ambiguous(found)
    names = [name for name, _ in pairs]
    ambiguous.keys_repeated = [name for name in found if names.count(name) > 1]
    return ambiguous


def _decode(text: str, allow_nan: bool) -> tuple[object, list[Loc]]:
    """Decode a document; also return the locations of its duplicate keys, which cost a second pass."""
    try:
        return (_WITH_NAN if allow_nan else _STRICT).decode(text), []
    except _AmbiguousError:
        decoder = json.JSONDecoder(
            parse_float=FloatLiteral, parse_constant=float if allow_nan else _refuse, object_pairs_hook=_marked
        )
        document = decoder.decode(text)
        return document, list(_repeated(document, ()))


_quoted: Callable[[object], str] = json.encoder.encode_basestring  # type: ignore[assignment]
_STRICT = json.JSONDecoder(parse_float=FloatLiteral, parse_constant=_refuse, object_pairs_hook=_unambiguous)
_WITH_NAN = json.JSONDecoder(parse_float=FloatLiteral, parse_constant=float, object_pairs_hook=_unambiguous)


def loads(data: Any, *, key: str, allow_nan: bool = False, duplicates: list[Loc] | None = None) -> Any:
    """Parse one JSON document.

    `data` is the stored bytes (UTF-8, no byte-order mark), `key` names it in errors. `allow_nan` accepts the bare
    tokens ``NaN``, ``Infinity`` and ``-Infinity`` (v1 documents and attributes hold them in practice). `duplicates`
    receives the locations of all duplicate keys, none of which is then an error: the last one wins.

    Raises `MetadataValidationError` when the bytes are not valid UTF-8 or JSON, or nest deeper than Python's own limit, and
    for duplicate keys outside of user attributes.
    """
    try:
        text = str(memoryview(data), "utf-8")
        document, repeated = _decode(text, allow_nan)
    except MetadataValidationError as error:
        raise error.at(key=key)  # noqa: B904 - the same error
    except UnicodeDecodeError as error:
        raise MetadataValidationError("invalid JSON: not UTF-8", key=key, got=str(error)) from error
    except json.JSONDecodeError as error:
        hint = "Remove the byte-order mark that it begins with" if text.startswith("\ufeff") else None
        raise InvalidJSONError("invalid JSON", error=error, key=key, got=str(error), hint=hint) from error
    except RecursionError as error:
        raise MetadataValidationError("invalid JSON: nested too deeply", key=key) from error
    except ValueError as error:  # an integer with more digits than Python's limit
        raise MetadataValidationError("invalid JSON", key=key, got=str(error)) from error
    if duplicates is not None:
        duplicates += repeated
        return document
    problems = [Problem(loc, "duplicate", "occurs more than once") for loc in repeated if not in_attributes(key, loc)]
    if problems:
        hint = "`tessarr repair` writes the document again with the last value of each"
        raise MetadataValidationError("duplicate keys in a JSON object", problems, key=key, hint=hint)
    return document


def _repeated(value: object, at: Loc) -> Iterator[Loc]:
    """Yield the locations of duplicate keys."""
    if isinstance(value, dict):
        if isinstance(value, _Ambiguous):
            yield from ((*at, name) for name in value.keys_repeated)
        for name, item in value.items():
            yield from _repeated(item, (*at, name))
    elif isinstance(value, list):
        for position, item in enumerate(value):
            yield from _repeated(item, (*at, position))


def in_attributes(key: str, loc: Loc) -> bool:
    """Tell whether a location in the document at `key` is in user attributes, consolidated ones included.

    >>> in_attributes("a/zarr.json", ("attributes", "x")), in_attributes(".zarray", ("shape",))
    (True, False)
    """
    if key.rpartition("/")[2] in (".zattrs", "attrs"):
        return True
    if loc[:2] == ("consolidated_metadata", "metadata"):
        loc = loc[3:]
    while loc[:1] == ("members",):
        loc = loc[2:]
    if loc[:1] == ("metadata",):
        return len(loc) > 2 and str(loc[1]).rpartition("/")[2] == ".zattrs"
    return loc[:1] == ("attributes",)


def _default(value: object) -> object:
    """Convert NumPy scalars and arrays to plain values."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serializable")  # `dumps` adds where it is


def dumps(document: object, *, indent: int | None = 2, sort_keys: bool = False, allow_nan: bool = False) -> bytes:
    """Serialise to UTF-8 JSON that any parser accepts: without NaN and Infinity tokens and byte-order mark.

    NumPy scalars and arrays are written as the plain values they hold. `allow_nan` writes the tokens, which are not JSON.

    Raises `ValueError` for NaN or infinity, `TypeError` for values without a JSON form.
    """
    if indent is not None:
        try:
            return _spell(document, "\n", " " * indent, sort_keys).encode()
        except (_OtherValueError, RecursionError):
            pass  # `json` writes it, or says what is wrong
    try:
        text = json.dumps(
            document, indent=indent, sort_keys=sort_keys, ensure_ascii=False, allow_nan=allow_nan, default=_default
        )
    except TypeError as error:
        place = ".".join(map(str, next(_other(document, ()), ())))
        raise TypeError(
            f"{place}: {error}; store a text, a number, a list or a dict" if place else str(error)
        ) from error
    except ValueError as error:
        found = next(_not_finite(document, ()), None)
        if found is None:
            raise
        (*where, value) = found
        raise ValueError(
            f"{_named(where) or 'the value'} is {value}, and JSON has no NaN or infinity. Store a text, or set "
            '`tessarr.config.set({"attributes.allow_nan": True})`, which writes it as zarr-python does'
        ) from error
    return text.encode()


def _named(where: Sequence[object]) -> str:
    """Name the member at `where`: ``a.b``, and ``a['.zattrs'].b`` where a part is not a word."""
    parts = [f".{part}" if re.fullmatch(r"[\w-]+", str(part)) else f"[{part!r}]" for part in where]
    return "".join(parts).removeprefix(".")


class _OtherValueError(Exception):
    """A value that `_spell` leaves to `json`."""


def _spell(value: object, line: str, indent: str, sort_keys: bool) -> str:
    """Spell a document as `json.dumps` does with an indent, for which `json` has only a slow form.

    `line`: the beginning of the line on which the value begins. Raises `_OtherValueError` for a value that is not a plain one
    of JSON, or a number that is not finite.
    """
    kind = type(value)
    if kind is str:
        return _quoted(value)
    if kind is int:
        return repr(value)
    if value is None or kind is bool:
        return "null" if value is None else "true" if value else "false"
    if kind is float and math.isfinite(value):  # type: ignore[arg-type]
        return repr(value)
    below = line + indent
    if kind is list:
        items = [_spell(item, below, indent, sort_keys) for item in value]  # type: ignore[attr-defined]
        return f"[{below}{f',{below}'.join(items)}{line}]" if items else "[]"
    if kind is not dict:
        raise _OtherValueError
    members = []
    for name, item in sorted(value.items()) if sort_keys else value.items():  # type: ignore[attr-defined]
        if type(name) is not str:
            raise _OtherValueError
        members.append(f"{_quoted(name)}: {_spell(item, below, indent, sort_keys)}")
    return f"{{{below}{f',{below}'.join(members)}{line}}}" if members else "{}"


def _leaves(value: object, where: Loc) -> Iterator[tuple[Loc, object]]:
    """Yield the location and value of all that is neither an object nor a list of JSON."""
    if isinstance(value, np.generic | np.ndarray):
        value = value.tolist()
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _leaves(item, (*where, name))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _leaves(item, (*where, index))
    else:
        yield where, value


def _not_finite(value: object, where: Loc) -> Iterator[Loc]:
    """Yield the location of each NaN and infinity in `value`, with the number as its last part."""
    for place, leaf in _leaves(value, where):
        if isinstance(leaf, float) and not math.isfinite(leaf):
            yield *place, str(leaf)


def _other(value: object, where: Loc) -> Iterator[Loc]:
    """Yield the location of each value that has no form in JSON."""
    for place, leaf in _leaves(value, where):
        if not (leaf is None or isinstance(leaf, str | int | float)):
            yield place


def _name(name: object) -> str:
    """Return the text that `json` writes for the name of a member. Raises `TypeError` for one that it does not write."""
    if name is None or isinstance(name, int | float):
        return json.dumps(name)
    raise TypeError(f"a name must be a text, got {name!r}")


def plain(value: object) -> Any:
    """Return `value` as reading its JSON would: tuples as lists, NumPy values as plain ones, new containers.

    Names that are numbers become texts, as `json` writes them. Raises `TypeError` for other names, and for two that become one.
    """
    if isinstance(value, dict):
        new = {name if isinstance(name, str) else _name(name): plain(item) for name, item in value.items()}
        if len(new) < len(value):
            raise TypeError(f"two names are one as texts: {', '.join(map(repr, value))}")
        return new
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    return float(value) if isinstance(value, FloatLiteral) else value

"""JSON as Zarr documents need it: strict on the way out, exact on the way in.

Reading keeps integers exact and float literals as their decimal text (`FloatLiteral`), so that a fill value is rounded
once, from the text, to the data type it belongs to (v3 core, "Fill value"). Duplicate keys: the last one wins, as in
RFC 8259's usual reading. Bare ``NaN``/``Infinity`` tokens are not JSON; `loads` refuses them unless asked.
"""

from __future__ import annotations

import json
from typing import Any, NoReturn, Self

import numpy as np

from tessarr.errors import MetadataValidationError


class FloatLiteral(float):
    """A float that remembers the decimal text it was read from."""

    text: str

    def __new__(cls, text: str) -> Self:
        self = super().__new__(cls, text)
        self.text = text
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FloatLiteral, (self.text,)


def _refuse(token: str) -> NoReturn:
    raise MetadataValidationError(
        "invalid JSON", got=f"the bare token {token}", hint='Write it as a string, such as "NaN"'
    )


_STRICT = json.JSONDecoder(parse_float=FloatLiteral, parse_constant=_refuse)
_WITH_NAN = json.JSONDecoder(parse_float=FloatLiteral, parse_constant=float)


def loads(data: Any, *, key: str, allow_nan: bool = False) -> Any:
    """Parse one JSON document.

    `data` is the stored bytes (UTF-8, no byte-order mark), `key` names it in errors. `allow_nan` accepts the bare
    tokens ``NaN``, ``Infinity`` and ``-Infinity`` (v1 documents and attributes hold them in practice).

    Raises `MetadataValidationError` when the bytes are not valid UTF-8 or JSON, or nest deeper than Python's own limit.
    """
    try:
        text = str(memoryview(data), "utf-8")
        return (_WITH_NAN if allow_nan else _STRICT).decode(text)
    except MetadataValidationError as error:
        raise error.at(key=key)  # noqa: B904 - the same error
    except UnicodeDecodeError as error:
        raise MetadataValidationError("invalid JSON: not UTF-8", key=key, got=str(error)) from error
    except json.JSONDecodeError as error:
        hint = "Remove the byte-order mark that it begins with" if text.startswith("\ufeff") else None
        raise MetadataValidationError("invalid JSON", key=key, got=str(error), hint=hint) from error
    except RecursionError as error:
        raise MetadataValidationError("invalid JSON: nested too deeply", key=key) from error
    except ValueError as error:  # an integer of more digits than Python converts
        raise MetadataValidationError("invalid JSON", key=key, got=str(error)) from error


def _default(value: Any) -> Any:
    """NumPy scalars and arrays as the plain values they hold."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} is not JSON serialisable")


def dumps(document: Any, *, indent: int | None = 2, sort_keys: bool = False) -> bytes:
    """Serialise to UTF-8 JSON that any parser accepts: no NaN or Infinity tokens, no byte-order mark.

    NumPy scalars and arrays are written as the plain values they hold.

    Raises `ValueError` for NaN or infinity, `TypeError` for what JSON cannot hold.
    """
    text = json.dumps(
        document, indent=indent, sort_keys=sort_keys, ensure_ascii=False, allow_nan=False, default=_default
    )
    return text.encode()


def plain(value: Any) -> Any:
    """`value` as a JSON document would give it back: tuples as lists, NumPy values as plain ones, own containers."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    return float(value) if isinstance(value, FloatLiteral) else value

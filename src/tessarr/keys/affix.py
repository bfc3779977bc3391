"""The ``prefix`` and ``suffix`` chunk key encodings: text before or after the keys of another encoding.

Source: zarr-extensions pull requests 47 and 28 (proposed). v3 names ``prefix`` and ``suffix``; no v2 form.

>>> PrefixKeyEncoding.from_json({"prefix": "x/", "base_encoding": "v2"}).encode((0, 0, 0))
'x/0.0.0'
>>> SuffixKeyEncoding.from_json({"suffix": ".tiff"}).encode((1, 2))
'c/1/2.tiff'

``base_encoding`` is an encoding, as an object or a name; in ``suffix`` it may be left out, and is ``default`` then. One
example of the proposal spells it ``base-encoding``, which is read too. zarrs has ``zarrs.default_suffix``, which is
``suffix`` with the members ``suffix`` and ``separator``; writing keeps that name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr import registry
from tessarr.errors import MetadataValidationError, Problem, problems_of
from tessarr.keys.base import ChunkKeyEncoding, KeyTemplate
from tessarr.keys.default import DefaultKeyEncoding
from tessarr.keys.templated import check_template, check_text
from tessarr.types import JSON, Coords, JSONObject

_BASES = ("base_encoding", "base-encoding")
_DEEPEST = 8
"""Limit on nested encodings: deeper documents are made to exhaust the stack."""


def _base(configuration: Mapping[str, JSON], problems: list[Problem]) -> ChunkKeyEncoding | None:
    """Parse the encoding nested in an encoding's configuration."""
    given = [configuration[name] for name in _BASES if name in configuration] or ["default"]
    value = given[0]
    parsed = {"name": value} if isinstance(value, str) else value if isinstance(value, Mapping) else {}
    name, inner = parsed.get("name"), parsed.get("configuration", {})
    if len(given) > 1 or not isinstance(name, str) or not isinstance(inner, Mapping):
        problems.append(Problem(("base_encoding",), "value", f"must be one chunk key encoding, got {value!r}"))
        return None
    implementation = registry.get("chunk_key_encoding", name)
    if implementation is None:
        problems.append(Problem(("base_encoding",), "unsupported", f"unknown chunk key encoding {name!r}"))
        return None
    try:
        found: ChunkKeyEncoding = implementation.from_json(inner)
    except MetadataValidationError as error:
        problems += problems_of(error, "base_encoding", "configuration")
        return None
    return found


def _depth(value: object) -> int:
    """Count the nested encodings in a configuration."""
    depth = 0
    while isinstance(value, Mapping):
        found = next((value[name] for name in _BASES if name in value), None)
        value = found.get("configuration") if isinstance(found, Mapping) else None
        depth += 1
    return depth


class _Affix(ChunkKeyEncoding):
    """Add text to the keys of `base`."""

    __slots__ = ("base", "text")
    needs_base: ClassVar[bool]

    def __init__(self, text: str, base: ChunkKeyEncoding | None = None) -> None:
        wrong = check_text(text) or self._wrong(text)
        if wrong is not None:
            problems = [Problem((self.name,), "value", wrong)]
            raise MetadataValidationError(f"invalid {self.name} chunk key encoding", problems)
        self.text, self.base = text, base or DefaultKeyEncoding()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Affix) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash((self.name, self.text, self.base))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.text!r}, {self.base!r})"

    def _wrong(self, text: str) -> str | None:
        raise NotImplementedError

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", f"{name!r} is not a member of the {cls.name} key encoding's configuration")
            for name in configuration
            if name not in (cls.name, *_BASES)
        ]
        required = (cls.name, "base_encoding") if cls.needs_base else (cls.name,)
        problems += [Problem((name,), "missing", "is required") for name in required if name not in configuration]
        if _depth(configuration) > _DEEPEST:
            message = f"holds more than {_DEEPEST} nested encodings"
            problems.append(Problem(("base_encoding",), "value", message))
        base = None if problems else _base(configuration, problems)
        if problems:
            raise MetadataValidationError(f"invalid {cls.name} chunk key encoding", problems)
        return cls(configuration[cls.name], base)  # type: ignore[arg-type]  # checked there

    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_key_encoding`` object, its base always included."""
        return {"name": self.name, "configuration": {self.name: self.text, "base_encoding": self.base.to_json()}}

    def _around(self, parts: KeyTemplate) -> KeyTemplate:
        raise NotImplementedError

    def template(self, ndim: int) -> KeyTemplate | None:
        inner = self.base.template(ndim)
        if inner is None:
            return None
        parts = self._around(inner)
        check_template(self.name, parts, ndim)
        return parts


class PrefixKeyEncoding(_Affix):
    """Prepend `text` to the keys of `base`.

    Raises `MetadataValidationError` for text that is empty or cannot begin a chunk key.
    """

    name: ClassVar[str] = "prefix"
    needs_base = True
    __slots__ = ()

    def _wrong(self, text: str) -> str | None:
        return f"must not be empty or begin with '/', got {text!r}" if not text or text.startswith("/") else None

    def _around(self, parts: KeyTemplate) -> KeyTemplate:
        return (self.text, *parts)

    def encode(self, coords: Coords) -> str:
        return self.text + self.base.encode(coords)

    def decode(self, key: str, ndim: int) -> Coords | None:
        return self.base.decode(key[len(self.text) :], ndim) if key.startswith(self.text) else None


class SuffixKeyEncoding(_Affix):
    """Append `text` to the keys of `base`, the ``default`` encoding when ``None``.

    Raises `MetadataValidationError` for text that cannot end a chunk key.
    """

    name: ClassVar[str] = "suffix"
    needs_base = False
    __slots__ = ()

    def _wrong(self, text: str) -> str | None:
        return f"must not end with '/', got {text!r}" if text.endswith("/") else None

    def _around(self, parts: KeyTemplate) -> KeyTemplate:
        return (*parts, self.text)

    def encode(self, coords: Coords) -> str:
        return self.base.encode(coords) + self.text

    def decode(self, key: str, ndim: int) -> Coords | None:
        return self.base.decode(key[: len(key) - len(self.text)], ndim) if key.endswith(self.text) else None


class DefaultSuffixKeyEncoding(SuffixKeyEncoding):
    """``zarrs.default_suffix``: `SuffixKeyEncoding` over the ``default`` encoding, with other members."""

    __slots__ = ()

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        rest = {name: value for name, value in configuration.items() if name != "suffix"}
        base = DefaultKeyEncoding.from_json(rest)
        if "suffix" not in configuration:
            problems = [Problem(("suffix",), "missing", "is required")]
            raise MetadataValidationError("invalid zarrs.default_suffix chunk key encoding", problems)
        return cls(configuration["suffix"], base)  # type: ignore[arg-type]  # checked there

    def to_json(self) -> JSONObject:
        """Return the v3 ``chunk_key_encoding`` object."""
        separator = self.base.separator if isinstance(self.base, DefaultKeyEncoding) else "/"
        return {"name": "zarrs.default_suffix", "configuration": {"separator": separator, "suffix": self.text}}

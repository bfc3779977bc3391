"""The ``template`` chunk key encoding: a string with placeholders for the coords.

Source: zarr-extensions pull request 69 (proposed). v3 name ``template``; no v2 form.

>>> encoding = TemplateKeyEncoding.from_json({"template": "images/{-1}/{*:04}.jpeg", "separator": "_"})
>>> encoding.encode((11, 22, 33)), encoding.decode("images/33/0011_0022.jpeg", 3)
('images/33/0011_0022.jpeg', (11, 22, 33))

``{0}`` is the index of the first axis, ``{-1}`` that of the last, ``{*}`` those of all axes not named elsewhere, joined by
``separator``; a format ``:04`` pads with zeros to four digits; ``{{`` and ``}}`` are braces. Every axis must be named once,
so a template fits certain numbers of dimensions only. The examples of the proposal call the member ``format``, its
table ``template``: both are read, ``template`` is written. Ambiguous templates, which give two chunks the same key, such
as ``{0}{1}``, are refused here; the proposal has no rule for them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Self

from tessarr.errors import MetadataValidationError, Problem
from tessarr.keys.base import KeyTemplate, Slot
from tessarr.keys.templated import TemplatedKeyEncoding, check_text, join_slots
from tessarr.types import JSON, JSONObject

_TERM = re.compile(r"\{\{|\}\}|\{(\*|0|-?[1-9][0-9]{0,2})(?::0([0-9]{1,2}))?\}", re.ASCII)
_REST = "*"


class TemplateKeyEncoding(TemplatedKeyEncoding):
    """Build keys from `template`; `separator` joins the indices of ``{*}``.

    Raises `MetadataValidationError` for an invalid template.
    """

    name: ClassVar[str] = "template"
    __slots__ = ("_terms", "separator", "text")

    def __init__(self, template: str, separator: str | None = None) -> None:
        problems = [
            Problem((member,), "value", wrong)
            for member, value in (("template", template), ("separator", "" if separator is None else separator))
            if (wrong := check_text(value)) is not None
        ]
        self._terms: list[str | tuple[str, int]] = []
        """Text, and placeholders: the name of an axis, and the minimum number of digits."""
        if not problems:
            wrong = self._parse(template, separator)
            problems = [Problem(("template",), "value", wrong)] if wrong else []
        if problems:
            raise MetadataValidationError("invalid template chunk key encoding", problems)
        self.text, self.separator = template, separator

    def _parse(self, template: str, separator: str | None) -> str | None:
        """Fill `_terms`; return what is wrong with the template, or ``None``."""
        at, rests = 0, 0
        for found in _TERM.finditer(template):
            self._terms.append(template[at : found.start()])
            at, (named, width) = found.end(), found.groups()
            self._terms.append(found.group()[0] if named is None else (named, int(width or 0)))
            rests += named == _REST
        self._terms.append(template[at:])
        between = _TERM.sub("", template)
        if "{" in between or "}" in between:
            return f"has an unmatched brace (write {{{{ or }}}} for a brace), got {template!r}"
        if not any(isinstance(term, tuple) for term in self._terms):
            return f"must name at least one index, got {template!r}"
        if template.startswith("/"):
            return f"must not begin with '/', got {template!r}"
        if rests > 1:
            return "may hold {*} only once"
        return "needs a separator for {*}" if rests and separator is None else None

    @classmethod
    def from_json(cls, configuration: Mapping[str, JSON]) -> Self:
        problems = [
            Problem((name,), "unknown", f"{name!r} is not a member of the template key encoding's configuration")
            for name in configuration
            if name not in ("template", "format", "separator")
        ]
        given = [configuration[name] for name in ("template", "format") if name in configuration]
        if len(given) != 1:
            problems.append(Problem(("template",), "missing" if not given else "value", "is required once"))
        if problems:
            raise MetadataValidationError("invalid template chunk key encoding", problems)
        return cls(given[0], configuration.get("separator"))  # type: ignore[arg-type]  # checked there

    def to_json(self) -> JSONObject:
        separator: JSONObject = {} if self.separator is None else {"separator": self.separator}
        return {"name": "template", "configuration": {"template": self.text, **separator}}

    def parts(self, ndim: int) -> KeyTemplate:
        named = [_axis(term[0], ndim) for term in self._terms if isinstance(term, tuple) and term[0] != _REST]
        rest = [axis for axis in range(ndim) if axis not in named]
        parts: list[str | Slot] = []
        for term in self._terms:
            if isinstance(term, str):
                parts.append(term)
            elif term[0] != _REST:
                parts.append(Slot(_axis(term[0], ndim), term[1]))
            elif not rest:
                problem = Problem((), "value", "{*} matches no axis")
                raise MetadataValidationError(f"the template does not fit {ndim} dimensions", [problem])
            else:
                parts += join_slots(rest, self.separator or "", term[1])
        return tuple(part for part in parts if part != "")


def _axis(named: str, ndim: int) -> int:
    axis = int(named)
    found = axis + ndim if axis < 0 else axis
    if not 0 <= found < ndim:
        problem = Problem((), "value", f"there is no axis {named}")
        raise MetadataValidationError(f"the template does not fit {ndim} dimensions", [problem])
    return found

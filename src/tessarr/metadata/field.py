"""Check documents of all formats; each check adds its problems to one list instead of stopping at the first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from tessarr.common.warn import Diagnostic
from tessarr.errors import MetadataValidationError, Problem, TessarrError, problems_of
from tessarr.settings import is_strict
from tessarr.types import JSON

if TYPE_CHECKING:
    from tessarr.metadata.array import ArrayMetadata
    from tessarr.metadata.group import GroupMetadata

MAX_LENGTH = 2**63 - 1
MAX_DIMENSIONS = 64
"""NumPy's limit; a document with more dimensions is hostile or not usable here."""


class Parsed(NamedTuple):
    """Hold a parsed node, and what is unusual about its documents."""

    node: ArrayMetadata | GroupMetadata
    diagnostics: tuple[Diagnostic, ...]
    """Unusual statements of the document, which `core` issues as warnings (`tessarr.common.warn.report`)."""


class Document:
    """Collect the problems and diagnostics of one metadata document."""

    def __init__(self, document: object, what: str, key: str) -> None:
        if not isinstance(document, Mapping):
            raise MetadataValidationError(
                f"{what} is not a JSON object", key=key, expected="an object", got=type(document).__name__
            )
        self.fields: Mapping[str, JSON] = document
        self.what = what
        self.key = key
        self.problems: list[Problem] = []
        self.diagnostics: list[Diagnostic] = []

    def add(self, name: str, kind: str, message: str) -> None:
        """Add a problem of the field `name`."""
        self.problems.append(Problem((name,), kind, message))

    def tolerate(self, name: str, message: str, read_as: str) -> None:
        """Add a diagnostic about a known violation of the specification; with the setting ``strict``, a problem."""
        if is_strict():
            self.add(name, "strict", message)
        else:
            self.diagnose(f"{name} {message}; read as {read_as}")

    def diagnose(self, message: str) -> None:
        """Add a diagnostic about something unusual that is read nevertheless."""
        self.diagnostics.append(Diagnostic(message))

    def parsed(self, node: ArrayMetadata | GroupMetadata) -> Parsed:
        """Return `node`, which was made from this document, with the diagnostics."""
        return Parsed(node, tuple(self.diagnostics))

    def adopt(self, name: str, error: TessarrError) -> None:
        """Add the problems of `error` to those of the field `name`."""
        self.problems += problems_of(error, name)

    def finish(self) -> None:
        """Raise `MetadataValidationError` if there are problems."""
        if self.problems:
            raise MetadataValidationError(f"invalid {self.what}", self.problems, key=self.key)

    def require(self, names: Iterable[str]) -> None:
        """Check that every one of `names` is present. Present members are checked in any case."""
        for name in names:
            if name not in self.fields:
                self.add(name, "missing", "required and not there")

    def format(self, number: int) -> None:
        """Check that ``zarr_format`` is the integer `number`."""
        found = self.fields.get("zarr_format", number)
        if type(found) is not int or found != number:
            self.add("zarr_format", "value", f"must be the integer {number}, got {found!r}")

    def lengths(self, name: str) -> tuple[int, ...]:
        """Return a list of non-negative integers; () when it is missing or invalid (which adds a problem)."""
        value = self.fields.get(name, [])
        if not isinstance(value, list | tuple):
            self.add(name, "type", f"must be a list of integers, got {value!r}")
            return ()
        if len(value) > MAX_DIMENSIONS:
            self.add(name, "unsupported", f"NumPy holds at most {MAX_DIMENSIONS} dimensions, got {len(value)}")
            return ()
        wrong = [item for item in value if type(item) is not int or not 0 <= item <= MAX_LENGTH]
        if wrong:
            self.add(name, "value", f"must hold integers from 0 to 2^63-1, got {wrong[0]!r}")
            return ()
        return tuple(cast("Sequence[int]", value))

    def attributes(self) -> dict[str, Any]:
        """Return the member ``attributes`` (v3), which must be an object."""
        value = self.fields.get("attributes", {})
        if not isinstance(value, Mapping):
            self.add("attributes", "type", f"must be an object, got {value!r}")
            return {}
        return dict(value)

    def extra(self, known: tuple[str, ...]) -> dict[str, Any]:
        """Return the members that are not `known` (v3), which must all say that they need not be understood (V3-EXT-07)."""
        extra = {}
        for name, value in self.fields.items():
            if name in known:
                continue
            if isinstance(value, Mapping) and value.get("must_understand") is False:
                extra[name] = value
            else:
                self.add(name, "unknown", 'unknown member; only an object with "must_understand": false may be ignored')
        return extra

    def choice(self, name: str, options: tuple[JSON, ...], default: object) -> Any:
        """Return the value of a member, which must be one of `options`."""
        value = self.fields.get(name, default)
        if value not in options:
            self.add(name, "value", f"must be one of {', '.join(map(repr, options))}; got {value!r}")
            return default
        return value


def check_attributes(attributes: object, key: str) -> dict[str, JSON]:
    """Check that user attributes are a JSON object. Raises `MetadataValidationError`."""
    if not isinstance(attributes, Mapping):
        raise MetadataValidationError(
            "attributes must be a JSON object", [Problem(("attributes",), "type", f"got {attributes!r}")], key=key
        )
    return dict(attributes)

"""Parse the JSON of a codec list into codecs, and report every problem rather than the first.

Source: Zarr v3.1 core, "Codecs" and "Extension definition" (names, short-hand strings, must_understand).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from tessarr import registry
from tessarr.codecs.array_to_bytes.bytes import BytesCodec
from tessarr.codecs.base import Codec
from tessarr.common import strict_json
from tessarr.errors import MetadataValidationError, Problem, UnknownCodecError, problems_of
from tessarr.types import JSON

Loc = tuple[str | int, ...]


@runtime_checkable
class NumcodecsCodec(Protocol):
    """A codec of the package numcodecs."""

    codec_id: str | None

    def get_config(self) -> Mapping[str, JSON]:
        """Return the configuration, with the name of the codec as ``id``."""
        ...


@runtime_checkable
class HasDocument(Protocol):
    """An object of zarr-python that has a JSON form: a codec, a data type, a chunk key encoding."""

    def to_dict(self) -> Mapping[str, Any]:
        """Return the JSON form."""
        ...


CodecLike: TypeAlias = "Codec | NumcodecsCodec | HasDocument | Mapping[str, object] | str"
"""What users give for a codec: a codec, its JSON or its name."""
CodecsLike: TypeAlias = "CodecLike | Sequence[CodecLike] | None"
"""What users give for the codecs of one kind."""
_PLAIN = frozenset(("name", "configuration"))
_EMPTY: dict[str, Any] = {}


def named_config(value: object, loc: Loc, problems: list[Problem]) -> tuple[str, Mapping[str, object], bool] | None:
    """Parse an extension definition to ``(name, configuration, must_understand)``; ``None`` when it is malformed.

    A plain string is the short-hand for an object with only a name.
    """
    if isinstance(value, str):
        return value, {}, True
    if type(value) is dict and value.keys() <= _PLAIN:  # the usual form, checked the short way
        name, configuration = value.get("name"), value.get("configuration", _EMPTY)
        if type(name) is str and type(configuration) is dict:
            return name, configuration, True
    if not isinstance(value, Mapping):
        problems.append(Problem(loc, "type", f"must be an object with a name, or a string; got {value!r}"))
        return None
    before = len(problems)
    name = value.get("name")
    if not isinstance(name, str):
        problems.append(Problem((*loc, "name"), "type", f"must be a string, got {name!r}"))
    configuration = value.get("configuration", {})
    if not isinstance(configuration, Mapping):
        problems.append(Problem((*loc, "configuration"), "type", f"must be an object, got {configuration!r}"))
    must_understand = value.get("must_understand", True)
    if not isinstance(must_understand, bool):
        problems.append(Problem((*loc, "must_understand"), "type", f"must be true or false, got {must_understand!r}"))
    for member in value:
        if member not in ("name", "configuration", "must_understand"):
            problems.append(Problem((*loc, member), "unknown", "unknown member of an extension definition"))
    return None if len(problems) > before else (str(name), configuration, bool(must_understand))


def parse_codecs(value: object, loc: Loc, problems: list[Problem]) -> tuple[tuple[Codec, ...], list[str]]:
    """Parse a list of codecs; return also the names of unknown codecs that may be ignored (must_understand false).

    The names include those of inner codecs, the ``ignored`` attribute of a codec.
    """
    if not isinstance(value, Sequence) or isinstance(value, str | bytes):
        problems.append(Problem(loc, "type", f"must be a list of codecs, got {value!r}"))
        return (), []
    codecs: list[Codec] = []
    ignored: list[str] = []
    for position, item in enumerate(value):
        where = (*loc, position)
        parsed = named_config(item, where, problems)
        if parsed is None:
            continue
        name, configuration, must_understand = parsed
        implementation = registry.get("codec", name)
        if implementation is None:
            if must_understand:
                problems.append(Problem((*where, "name"), "unsupported", unknown_codec_message(name)))
            else:
                ignored.append(name)
            continue
        try:
            codecs.append(implementation.from_json(configuration))
            ignored += getattr(codecs[-1], "ignored", ())
        except MetadataValidationError as error:
            problems += problems_of(error, *where, "configuration")
    return tuple(codecs), ignored


def unknown_codec_message(name: str) -> str:
    """Describe an unregistered codec, with a similar registered name."""
    from difflib import get_close_matches

    near = get_close_matches(name, list(registry.names("codec")), 1)
    guess = f"; did you mean {near[0]!r}?" if near else ""
    package = "imagecodecs" if name.startswith("imagecodecs") else None
    remedy = f"install the package {package!r}" if package else "register it with tessarr.registry.register"
    return f"unknown codec {name!r}{guess} ({remedy})"


def codec_from(value: object) -> Codec:
    """Make a codec from any value that users pass for one: a codec, its JSON (object or name), or a numcodecs codec.

    Raises `UnknownCodecError`, `MetadataValidationError`, or `TypeError` for something else.
    """
    if isinstance(value, Codec):
        return value
    if isinstance(value, str | Mapping):
        if isinstance(value, Mapping) and "name" not in value and "id" in value:
            from tessarr.codecs.numcodecs import as_codec

            return as_codec(value)
        problems: list[Problem] = []
        codecs, _ = parse_codecs([value], (), problems)
        unknown = [problem for problem in problems if problem.kind == "unsupported"]
        if unknown:
            raise UnknownCodecError(unknown[0].message)
        if problems and all(problem.kind == "missing" for problem in problems):
            given: Mapping[str, Any] = {"name": value} if isinstance(value, str) else value
            implementation: Any = registry.get("codec", given["name"])
            try:  # users may leave out members with a default; documents may not
                made: Codec = implementation(**given.get("configuration", {}))
                return made
            except TypeError as error:
                raise MetadataValidationError("invalid codec", problems) from error
        if problems:
            raise MetadataValidationError("invalid codec", problems)
        if isinstance(codecs[0], BytesCodec) and not (isinstance(value, Mapping) and value.get("configuration")):
            return BytesCodec()  # with the default of the byte order, likewise
        return codecs[0]
    if hasattr(value, "codec_id") and hasattr(value, "get_config"):
        from tessarr.codecs.numcodecs import as_codec

        return as_codec(value)
    if hasattr(value, "to_dict"):
        return codec_from(_json_of(value))
    raise TypeError(f"a codec, its JSON or a numcodecs codec is needed, got {type(value).__name__}: {value!r}")


def _json_of(codec: Any) -> object:
    """Return the JSON of a codec object of zarr-python, without what that has left open (blosc's typesize)."""
    document = strict_json.plain(codec.to_dict())
    for name in getattr(codec, "_tunable_attrs", ()):
        document.get("configuration", {}).pop(name, None)
    return document


def codecs_member(name: str, configuration: Mapping[str, JSON]) -> tuple[Codec, ...]:
    """Parse the ``codecs`` of the codec `name`, the only member of its `configuration`.

    Raises `MetadataValidationError` with all problems, unknown codecs included.
    """
    problems = [
        Problem((member,), "unknown", f"unknown member of the {name} codec")
        for member in configuration
        if member != "codecs"
    ]
    if "codecs" not in configuration:
        problems.append(Problem(("codecs",), "missing", "is required"))
    codecs, ignored = parse_codecs(configuration.get("codecs", []), ("codecs",), problems)
    if ignored:
        problems.append(Problem(("codecs",), "unsupported", f"unknown codecs {ignored}"))
    if problems:
        raise MetadataValidationError(f"invalid {name} codec", problems, codec=name)
    return codecs

r"""Validate keys, prefixes, paths and names, and convert them to each other.

- A *key* names a value in a store: ``group/array/c/0/1`` (`check_key`).
- A *prefix* names all keys that begin with it: ``""`` or ``group/`` (`check_prefix`).
- A *path* names a node: ``""`` is the root, ``group/array`` a node below (`normalize_path` makes one of user input).
- A *name* is one segment of a path (`check_node_name`).

>>> normalize_path("\\foo\\\\bar//baz/")
'foo/bar/baz'
>>> prefix_of("foo/bar"), join("foo", "bar", "zarr.json"), join("", "zarr.json")
('foo/bar/', 'foo/bar/zarr.json', 'zarr.json')

Differences: Zarr v2 forbids the names ``.`` and ``..`` only; v3 also every other name of periods alone, the name
``zarr.json``, and names that begin with ``__``. A name that begins with ``__``, other than ``__zarr…``, is only a warning
unless the setting ``strict`` is on. Windows has further rules (`windows_name_problem`).

Source: Zarr v2, "Logical storage paths"; Zarr v3.1 core, "Node names" and "Abstract store interface".
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, final

from tessarr.common.warn import warn
from tessarr.errors import KeyValidationError, NodeNameError, ZarrUserWarning
from tessarr.settings import config, is_strict
from tessarr.types import ZarrFormat

if TYPE_CHECKING:
    from tessarr.stores.base import Store

# ASCII only: such sets of characters are compiled in a fifth of the time, which every import would pay.
_FIRST, _LATER = r"\.?[\x01-\x2d\x30-\x7f]", r"[\x01-\x2e\x30-\x7f]*"
is_plain_key = re.compile(f"{_FIRST}{_LATER}(?:/{_FIRST}{_LATER})*").fullmatch
"""Matches most well-formed keys and no malformed one, in a third of a microsecond; `check_key` decides about the others."""

_RESERVED = 'it begins with "__", which is reserved'
_V2_DOCUMENTS = frozenset({".zarray", ".zgroup", ".zattrs", ".zmetadata"})
_RECOMMENDED = r"[A-Za-z0-9_.-]+"
_WINDOWS_DEVICE = r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])(?:\.|\Z)"
_WINDOWS_FORBIDDEN = r'[<>:"|?*\\\x00-\x1f]'

# -- keys and prefixes ---------------------------------------------------------------------------------------------


def check_key(key: str) -> None:
    """Raise `KeyValidationError` unless `key` is a well-formed store key."""
    if not isinstance(key, str):
        raise KeyValidationError("a store key is a string", got=type(key).__name__)
    if is_plain_key(key):
        return
    problem = _key_problem(key)
    if problem is not None:
        raise KeyValidationError(f"malformed store key: {problem}", key=_short(key))


def check_prefix(prefix: str) -> None:
    """Raise `KeyValidationError` unless `prefix` is ``""`` or a well-formed key followed by ``/``."""
    if not isinstance(prefix, str):
        raise KeyValidationError("a store prefix is a string", got=type(prefix).__name__)
    if prefix == "":
        return
    if not prefix.endswith("/"):
        raise KeyValidationError('a prefix is "" or ends with "/"', key=_short(prefix))
    problem = None if is_plain_key(prefix[:-1]) else _key_problem(prefix[:-1])
    if problem is not None:
        raise KeyValidationError(f"malformed prefix: {problem}", key=_short(prefix))


def _key_problem(key: str) -> str | None:
    if key == "":
        return "it is empty"
    if "\0" in key:
        return "it holds a NUL character"
    if not is_unicode(key):
        return "it cannot be written as UTF-8"
    if key[0] == "/" or key[-1] == "/":
        return 'it begins or ends with "/"'
    for segment in key.split("/"):
        if segment == "":
            return "it has an empty segment"
        if segment in (".", ".."):
            return f"it has the segment {segment!r}"
    return None


def is_unicode(text: str) -> bool:
    """Whether `text` can be encoded as UTF-8; lone surrogates (undecodable file names) cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _short(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"


# -- paths ---------------------------------------------------------------------------------------------------------


def normalize_path(path: str | bytes | None) -> str:
    r"""Normalise a path as a user writes it: remove slashes at the ends and doubled slashes, turn backslashes into slashes.

    ``None``, ``""`` and ``"/"`` are the root, ``""``. Raises `NodeNameError` for a segment ``.`` or ``..`` and for NUL.

    Source: Zarr v2, "Logical storage paths", steps 1 to 6.

    >>> normalize_path("/"), normalize_path("a..b/.hidden/...")
    ('', 'a..b/.hidden/...')
    """
    if not path:
        return ""
    if isinstance(path, bytes):
        path = path.decode("utf-8")
    if not isinstance(path, str):
        raise NodeNameError("a path is a string", got=type(path).__name__)
    if is_plain_key(path) and "\\" not in path:
        return path
    segments = [segment for segment in path.replace("\\", "/").split("/") if segment]
    for segment in segments:
        if segment in (".", "..") or "\0" in segment:
            raise NodeNameError(
                f"a path may not hold the segment {segment!r}",
                path=_short(path),
                hint="Paths are absolute within the store; write the node's full path",
            )
    return "/".join(segments)


def prefix_of(path: str) -> str:
    """Return the prefix of all keys of the node at `path` and below; ``""`` for the root."""
    return f"{path}/" if path else ""


def ancestors(path: str) -> Iterator[str]:
    """List the paths of all groups above a node, the root ("") first."""
    names = path.split("/") if path else []
    for depth in range(len(names)):
        yield "/".join(names[:depth])


def join(*parts: str) -> str:
    """Join paths and a key with slashes; empty parts are skipped."""
    return "/".join(part for part in parts if part)


# -- names ---------------------------------------------------------------------------------------------------------


def check_node_name(name: str, zarr_format: ZarrFormat = 3) -> None:
    """Raise `NodeNameError` unless a new node of that format may have this name (not the root, whose name is "").

    Warns (`ZarrUserWarning`) for a v1 or v2 name that is not ASCII, which these formats do not provide for, and for a v3
    name that begins with ``__``, which is an error with the setting ``strict``, and always for ``__zarr…``.

    >>> check_node_name("temperature"); check_node_name("...", 2)
    >>> check_node_name("...", 3)
    Traceback (most recent call last):
    tessarr.errors.NodeNameError: node name '...' is not allowed: it is only periods...
    """
    if not isinstance(name, str):
        raise NodeNameError("a node name is a string", got=type(name).__name__)
    problem = _name_problem(name) or (_v3_name_problem(name) if zarr_format == 3 else _v2_name_problem(name))
    if problem is not None:
        raise NodeNameError(f"node name {_short(name)!r} is not allowed: {problem} (Zarr v{zarr_format})")
    if zarr_format == 3:
        _warn_of_reserved(name)
    if zarr_format != 3 and not name.isascii():
        warn(
            f"node name {name!r} is not ASCII, as Zarr v{zarr_format} keys should be; other readers may not find it",
            ZarrUserWarning,
        )


def check_stored_name(path: str) -> None:
    """Warn (`ZarrUserWarning`) of a stored v3 node at `path` whose name begins with ``__``; `NodeNameError` when strict.

    >>> check_stored_name("model/temperature")
    """
    name = path.rpartition("/")[2]
    if name.startswith("__") and is_strict():
        raise NodeNameError(f"node name {_short(name)!r} is not allowed: {_RESERVED} (Zarr v3)")
    _warn_of_reserved(name)


def _warn_of_reserved(name: str) -> None:
    if name.startswith("__") and config.get("names.warn_reserved"):
        warn(
            f'node name {name!r} begins with "__", which Zarr v3 reserves; other readers may not find it',
            ZarrUserWarning,
            module=__name__,  # the tests of xarray, which makes such names, make warnings of its own modules errors
        )


def _name_problem(name: str) -> str | None:
    if name == "":
        return "it is empty, the name of the root"
    if "/" in name:
        return 'it holds "/", which separates names'
    if "\0" in name:
        return "it holds a NUL character"
    if name in (".", ".."):
        return "it is only periods"
    return None if is_unicode(name) else "it cannot be written as UTF-8"


def is_reserved_name(name: str) -> bool:
    """Whether no node of v3 may have this name: ``__zarr…``, and with the setting ``strict`` all that begin with ``__``.

    xarray names a variable ``__xarray_dataarray_variable__``.
    """
    return name.startswith("__") and (name.startswith("__zarr") or is_strict())


def _v3_name_problem(name: str) -> str | None:
    if not name.strip("."):
        return "it is only periods"
    if is_reserved_name(name):
        return _RESERVED if is_strict() else _RESERVED.replace("__", "__zarr")
    if name == "zarr.json":
        return "it is the name of the metadata document"
    return None


def _v2_name_problem(name: str) -> str | None:
    return "it is the name of a metadata document" if name in _V2_DOCUMENTS else None


def is_recommended_name(name: str) -> bool:
    """Whether a name is as the specification recommends: a-z A-Z 0-9 - _ . and, beyond ASCII, case-folded NFKC.

    >>> is_recommended_name("sea_level.2"), is_recommended_name("sea level"), is_recommended_name("Ä")
    (True, False, False)
    """
    if re.fullmatch(_RECOMMENDED, name):
        return True
    ascii_part = "".join(character for character in name if character.isascii())
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    return not name.isascii() and (not ascii_part or bool(re.fullmatch(_RECOMMENDED, ascii_part))) and name == folded


# -- file systems with narrower rules --------------------------------------------------------------------------------


def windows_name_problem(name: str) -> str | None:
    """Return the reason why Windows does not allow a file of this name, or ``None``.

    >>> windows_name_problem("nul.zarr"), windows_name_problem("a:b"), windows_name_problem("c")
    ('it is the name of a device', "it holds ':'", None)
    """
    forbidden = re.search(_WINDOWS_FORBIDDEN, name)
    if forbidden is not None:
        return f"it holds {forbidden[0]!r}"
    if re.match(_WINDOWS_DEVICE, name, re.IGNORECASE):
        return "it is the name of a device"
    if name[-1:] in (".", " "):
        return "it ends with a period or a space"
    if len(name.encode("utf-16-le", "surrogatepass")) > 2 * 255:
        return "it is longer than 255 characters"
    return None


def windows_path(base: str, key: str) -> str:
    r"""Return the Windows path of `key` in a store at `base`. Raises `KeyValidationError` for a name that Windows forbids.

    >>> windows_path("C:\\data", "foo/bar")
    'C:\\data\\foo\\bar'
    """
    for segment in key.split("/"):
        problem = windows_name_problem(segment)
        if problem is not None:
            raise KeyValidationError(f"Windows does not allow the name {_short(segment)!r}: {problem}", key=_short(key))
    return base.rstrip("\\/") + "\\" + key.replace("/", "\\")


def windows_extended(path: str) -> str:
    r"""Return an absolute Windows path in the extended form, whose length is not limited to 260 characters.

    >>> windows_extended("C:\\data"), windows_extended("\\\\server\\share\\x")
    ('\\\\?\\C:\\data', '\\\\?\\UNC\\server\\share\\x')
    """
    if path.startswith("\\\\?\\"):
        return path
    return "\\\\?\\UNC" + path[1:] if path.startswith("\\\\") else "\\\\?\\" + path


def file_url(path: str, *, windows: bool) -> str:
    r"""Return the canonical URL of an absolute path.

    Source: Zarr v3 stores, "File system store", canonical URI.

    >>> file_url("/my data", windows=False), file_url("c:\\my data", windows=True)
    ('file:///my%20data', 'file:///c:/my%20data')
    """
    from urllib.parse import quote

    if not windows:
        return "file://" + quote(os.fsencode(path))
    path = path.replace("\\", "/")
    if path.startswith("//"):
        return "file:" + quote(path)
    return "file:///" + quote(path.lstrip("/"), safe="/:")


def path_of_file_url(url: str, *, windows: bool) -> str:
    r"""Return the path that a ``file:`` URL names; the inverse of `file_url`. Raises `ValueError` for another host.

    >>> path_of_file_url("file:///my%20data", windows=False), path_of_file_url("file:///c:/my%20data", windows=True)
    ('/my data', 'c:\\my data')
    """
    from urllib.parse import unquote_to_bytes

    rest = url[len("file:") :]
    host, path = "", rest
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        path = slash + path
    path = os.fsdecode(unquote_to_bytes(path))
    if windows:
        if host and host != "localhost":
            path = f"//{host}{path}"
        elif re.match(r"/[A-Za-z]:", path):
            path = path[1:]
        return path.replace("/", "\\")
    if host not in ("", "localhost", "."):
        host = host.rpartition("@")[2]  # the part before "@" may be a password
        raise ValueError(f"a file: URL names another machine ({host!r}); a local path has three slashes: file:///path")
    return path


def case_collision(name: str, siblings: Iterable[str]) -> str | None:
    """Return the sibling that a case-insensitive (and normalisation-insensitive) file system takes for `name`, or ``None``.

    >>> case_collision("FOO", ["bar", "foo"]), case_collision("foo", ["foo"])
    ('foo', None)
    """
    folded = _fold(name)
    return next((other for other in siblings if other != name and _fold(other) == folded), None)


def _fold(name: str) -> str:
    return unicodedata.normalize("NFC", name.casefold())


# -- a place in a store --------------------------------------------------------------------------------------------


@final
class StorePath:
    """A store and a path in the store: one value that names a node's place.

    >>> from tessarr.stores.memory.store import MemoryStore
    >>> place = StorePath(MemoryStore(), "a") / "b"
    >>> place.path
    'a/b'
    """

    __slots__ = ("path", "store")

    def __init__(self, store: Store, path: str = "") -> None:
        self.store = store
        self.path = normalize_path(path)

    @property
    def read_only(self) -> bool:
        """Whether the store refuses writes."""
        return self.store.read_only

    def __truediv__(self, other: str) -> StorePath:
        return StorePath(self.store, f"{self.path}/{other}")

    def __str__(self) -> str:
        return f"{self.store.url.rstrip('/')}/{self.path}".rstrip("/")

    def __repr__(self) -> str:
        return f"StorePath({self.store!r}, {self.path!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StorePath):
            return NotImplemented
        return self.path == other.path and (self.store is other.store or self.store.url == other.store.url)

    def __hash__(self) -> int:
        return hash((self.store.url, self.path))


def path_of_url(url: str) -> str:
    """Return the path in ``sqlite:rel``, ``sqlite:/abs`` and ``sqlite:///abs``."""
    from urllib.parse import unquote

    place = unquote(url.partition(":")[2])
    return place[2:] if place.startswith("//") else place

"""Array metadata that was parsed before, found by what its document says beside the user's attributes.

To open an array again, or another of the same layout, is then a look-up. Only what was read without a doubt is kept
(`tessarr.doubts`), so that each reading of a doubtful document tells of it; nothing is kept once others have registered
extensions, whose warnings are not counted and whose classes may change.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from tessarr import doubts, registry
from tessarr.common.strict_json import FloatLiteral
from tessarr.metadata.array import ArrayMetadata
from tessarr.settings import is_strict
from tessarr.types import ZarrFormat

_MOST = 512
"""Documents that are kept; one more, and all make room."""
_LONGEST = 4096
"""Bytes of a key: large documents (of rectilinear grids) are not kept."""
_kept: dict[tuple[ZarrFormat, bool, bytes], ArrayMetadata] = {}


def parsed_array(
    zarr_format: ZarrFormat, document: Any, attributes: Any, parse: Callable[[], ArrayMetadata]
) -> ArrayMetadata:
    """What `parse` gives for `document` and `attributes` (which a v3 document also holds), or gave for such before."""
    key = _key(zarr_format, document) if type(attributes) is dict else None
    if key is None:
        return parse()
    found = _kept.get(key)
    if found is not None:
        return _own(found).with_attributes(dict(attributes))
    before = doubts.noted()
    made = parse()
    if doubts.noted() == before and (zarr_format != 3 or not (made.extra or made.storage_transformers)):
        if len(_kept) >= _MOST:
            _kept.clear()
        _kept[key] = _own(made).with_attributes({})
    return made


def _own(metadata: ArrayMetadata) -> ArrayMetadata:
    """`metadata` with objects of its own where v1 and v2 have some that could be changed."""
    if metadata.zarr_format == 3:
        return metadata
    compressor, filters, extra = deepcopy((metadata.compressor, metadata.filters, metadata.extra))
    return metadata.with_(compressor=compressor, filters=filters, extra=extra)


def _key(zarr_format: ZarrFormat, document: Any) -> tuple[ZarrFormat, bool, bytes] | None:
    if not isinstance(document, Mapping) or registry.is_extended():
        return None
    rest = {
        # Floats are told by the text that they were read from; no document holds bytes.
        name: value.text.encode() if isinstance(value, FloatLiteral) else value
        for name, value in document.items()
        if name != "attributes" or zarr_format != 3
    }
    try:
        # Version 2 has no references, whose use depends on more than the value.
        told = marshal.dumps(rest, 2)
    except ValueError:
        return None
    return (zarr_format, is_strict(), told) if len(told) <= _LONGEST else None

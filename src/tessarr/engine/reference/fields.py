"""Write some fields of structured elements.

Every chunk concerned is merged in one `Store.update`, so that concurrent writers of other fields, or of other elements, of
the same chunk lose nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tessarr.codecs.is_fill import is_fill
from tessarr.engine.bound import BoundArray
from tessarr.engine.pool import for_each
from tessarr.engine.reference.merge import part_of
from tessarr.engine.write_chunks import changing
from tessarr.indexing.plan import Part, plan
from tessarr.indexing.selection import Selection
from tessarr.stores.functions import deletes_safely
from tessarr.types import AnyArray, Buffer


def write_fields(bound: BoundArray, selection: Selection, values: Mapping[str, AnyArray]) -> None:
    """Store `values`: field name → array of ``selection.shape`` in the field's dtype; other fields stay as they are.

    Raises `CodecError` (with path, chunk and key) for a stored chunk that cannot be decoded, `StoreError` for I/O faults.
    """
    for_each(lambda part: _write_part(bound, part, values), plan(selection, bound.axes))


def _write_part(bound: BoundArray, part: Part, values: Mapping[str, AnyArray]) -> None:
    chain = bound.chain(bound.chunk_shape(part.coords))
    key = bound.key(part.coords)
    keep_empty = bound.options.write_empty_chunks or not deletes_safely(bound.store)

    def change(old: Buffer | None) -> Buffer | None:
        chunk = np.empty(chain.spec.shape, chain.spec.dtype)
        chunk[...] = chain.spec.fill if old is None else chain.decode(old)
        for name, value in values.items():
            chunk[name][part.local.index] = part_of(value, part)
        return None if not keep_empty and is_fill(chunk, chain.spec.fill) else chain.encode(chunk)

    with changing(bound, part.coords, key, bound.forget):
        bound.store.update(key, change)

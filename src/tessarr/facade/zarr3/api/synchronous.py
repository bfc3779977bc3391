"""Every top-level function, under the path that zarr-python documents."""

from tessarr.core.array import Array
from tessarr.core.copy import copy, copy_all, copy_store
from tessarr.core.creation.arrays import create, create_array
from tessarr.core.creation.shorthands import (
    array,
    consolidate_metadata,
    create_hierarchy,
    empty,
    empty_like,
    from_array,
    full,
    full_like,
    load,
    ones,
    ones_like,
    open_like,
    save,
    save_array,
    save_group,
    tree,
    zeros,
    zeros_like,
)
from tessarr.core.group import Group
from tessarr.core.open import (
    create_group,
    group,
    open,
    open_array,
    open_consolidated,
    open_group,
)

__all__ = [
    "Array",
    "Group",
    "array",
    "consolidate_metadata",
    "copy",
    "copy_all",
    "copy_store",
    "create",
    "create_array",
    "create_group",
    "create_hierarchy",
    "empty",
    "empty_like",
    "from_array",
    "full",
    "full_like",
    "group",
    "load",
    "ones",
    "ones_like",
    "open",
    "open_array",
    "open_consolidated",
    "open_group",
    "open_like",
    "save",
    "save_array",
    "save_group",
    "tree",
    "zeros",
    "zeros_like",
]

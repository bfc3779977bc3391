"""zarr-python 2's ``zarr.context``."""

from __future__ import annotations

from typing import TypedDict


class Context(TypedDict, total=False):
    """What the method ``getitems`` of a store is given. tessarr calls no such method."""

    meta_array: object
    """An array of the kind that is to be returned."""

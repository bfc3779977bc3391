"""Base of the stores over containers of other formats, whose documents are converted and whose axes may be reversed."""

from __future__ import annotations

from typing import ClassVar

from tessarr.metadata.n5 import AxisOrder
from tessarr.stores.wrappers.base import WrapperStore


class ContainerStore(WrapperStore):
    """The container in `store` (a path, a URL, a mapping, a store), with axes in `axis_order`. Raises `ValueError` for another
    order.
    """

    adapter: ClassVar[str]
    """What follows the URL of the wrapped store in that of the container, as in URL pipelines."""

    def __init__(self, store: object, *, axis_order: AxisOrder = "C", read_only: bool = False) -> None:
        from tessarr.stores.url import store_from

        if axis_order not in ("C", "F"):
            raise ValueError(f"axis_order must be 'C' or 'F', got {axis_order!r}")
        opened, path = store_from(store, read_only=read_only)
        if path:
            from tessarr.stores.wrappers.prefix import PrefixStore

            opened = PrefixStore(opened, path)
        super().__init__(opened.with_read_only() if read_only and not opened.read_only else opened)
        self.axis_order: AxisOrder = axis_order

    @property
    def supports_consolidated_metadata(self) -> bool:
        """``False``: the documents of a container are not Zarr's."""
        return False

    @property
    def url(self) -> str:
        """The URL of the container, followed by the adapter."""
        return f"{self.store.url}|{self.adapter}:"

    def __eq__(self, other: object) -> bool:
        return super().__eq__(other) and self.axis_order == getattr(other, "axis_order", None)

    def __hash__(self) -> int:
        return hash((type(self), self.store, self.axis_order))

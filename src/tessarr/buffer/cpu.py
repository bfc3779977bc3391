"""zarr-python's ``zarr.buffer.cpu``: what ``prototype=`` takes, which has no effect here."""

buffer_prototype = None

__all__ = ["buffer_prototype"]

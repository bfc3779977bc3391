"""Data types: how NumPy holds an element, and how each format spells its type and fill value.

`tessarr.dtypes.parse` makes data types; `tessarr.dtype` re-exports them for users.
"""

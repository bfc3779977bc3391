"""Data types: how NumPy holds an element, and how each format spells its type and fill value.

`tessarr.dtypes.parse` makes them; `tessarr.dtype` is the door for users.
"""

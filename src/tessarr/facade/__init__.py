"""zarr-python's names, in one tree: `zarr3` and `zarr2`, a module for each module of that version.

``import zarr`` imports one of the two while `tessarr.as_zarr` is installed. Modules of tessarr that have a name of zarr-python
(`tessarr.abc`, `tessarr.dtype`, `tessarr.convenience`, …) are doors: they only re-export from here. Four modules are tessarr's,
and this tree imports them: `tessarr.storage`, whose stores are synchronous, `tessarr.codecs`, `tessarr.errors` and
`tessarr.registry`.
"""

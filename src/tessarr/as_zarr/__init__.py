"""Answer ``import zarr`` with tessarr, so that xarray, dask, anndata and other packages that import zarr use tessarr unchanged.

>>> import tessarr.as_zarr
>>> tessarr.as_zarr.status().installed
False

Call `install` before anything imports ``zarr``; or run ``python -m tessarr.as_zarr SCRIPT`` or ``python -m tessarr.as_zarr -m
MODULE``; in a notebook ``%load_ext tessarr.as_zarr``; for dask's workers ``dask worker --preload tessarr.as_zarr``. Child
processes that are spawned inherit the alias through the environment variable ``TESSARR_AS_ZARR`` where they run ``install``
or import this module with that variable set (see `install_from_environment`).

``zarr.Array`` is `tessarr.Array`; the same holds for every class that both packages have. Classes with another interface in
zarr-python, such as stores whose methods are coroutines, are in `tessarr.facade.zarr3`, which has one module for each module
of zarr-python. Pickles name tessarr's modules, so that a process that loads them needs tessarr, not the alias.
"""

from __future__ import annotations

from tessarr.as_zarr._alias import AliasError, Status, install, status, uninstall

__all__ = [
    "AliasError",
    "Status",
    "dask_setup",
    "install",
    "install_from_environment",
    "load_ipython_extension",
    "status",
    "uninstall",
    "unload_ipython_extension",
]


def install_from_environment() -> bool:
    """Install the alias if the environment variable ``TESSARR_AS_ZARR`` is set.

    ``1`` and ``3`` provide the names of zarr-python 3, ``2`` those of zarr-python 2; ``0``, ``false`` and ``no`` install
    nothing. Returns whether the alias is installed.
    """
    import os

    value = os.environ.get("TESSARR_AS_ZARR", "").strip().lower()
    if value not in ("", "0", "false", "no"):
        install(version=2 if value == "2" else 3)
    return status().installed


def load_ipython_extension(ipython: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Install the alias in a notebook: ``%load_ext tessarr.as_zarr`` in its first cell."""
    install()


def unload_ipython_extension(ipython: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Remove the alias: ``%unload_ext tessarr.as_zarr``."""
    uninstall()


def dask_setup(worker: object) -> None:  # noqa: ARG001 - the name of the argument is theirs
    """Install the alias in a process of dask: ``--preload tessarr.as_zarr``, or ``distributed.worker.preload``."""
    install()

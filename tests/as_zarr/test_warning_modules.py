"""Under the alias, filters by module see a warning that zarr-python attributes to itself in zarr-python's module."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable
from unittest import mock

import pytest

import tessarr
from tessarr.codecs.numcodecs import v3
from tessarr.errors import ZarrUserWarning


def consolidated(zarr_format: int, *, members: bool = True) -> tessarr.Group:
    """A group with an array, or without, whose metadata were consolidated."""
    group = tessarr.create_group({}, zarr_format=zarr_format)
    if members:
        group.create_array("a", shape=4, dtype="u1")
    return tessarr.consolidate_metadata(group.store)


def numcodecs_zlib(*, warns: bool) -> object:
    """A codec of numcodecs, made where zarr-python's release for the running Python warns of it, or does not."""
    with mock.patch.object(v3, "ZARR_PYTHON_WARNS", new=warns):
        return v3.Zlib(level=1)


OF_ZARR_PYTHON: dict[str, tuple[str, str, Callable[[], object]]] = {
    "consolidated": ("zarr.api.asynchronous", "Consolidated metadata is currently not part", lambda: consolidated(3)),
    "shards": (
        "zarr.core.array",
        "Automatic shard shape inference is experimental",
        lambda: tessarr.create_array({}, shape=8, chunks=2, shards="auto", dtype="u1"),
    ),
    "order": (
        "zarr.core.array",
        "The existing order='F' of the source Zarr format 2 array",
        lambda: tessarr.from_array({}, data=tessarr.ones(4, store={}, zarr_format=2, order="F"), zarr_format=3),
    ),
    "numcodecs": (
        "zarr.codecs.numcodecs._codecs",
        "Numcodecs codecs are not in the Zarr version 3 specification",
        lambda: numcodecs_zlib(warns=True),
    ),
}
"""Warnings that zarr-python 3.1.6 attributes to a module of its own: this module, the message, what provokes it."""


@pytest.mark.parametrize("kind", OF_ZARR_PYTHON)
def test_warnings_that_are_zarr_python_s_own_are_no_errors_of_packages_that_raise_theirs(
    as_zarr: None, kind: str
) -> None:
    """The settings of xarray's tests have the filter ``error:::xarray.*``; here this module is in xarray's place."""
    _, message, provoke = OF_ZARR_PYTHON[kind]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", module=re.escape(__name__))
        provoke()
    (found,) = [item for item in caught if message in str(item.message)]
    assert found.category is ZarrUserWarning
    assert found.filename == __file__


@pytest.mark.parametrize("kind", OF_ZARR_PYTHON)
def test_filters_for_modules_of_zarr_python_match_its_own_warnings(as_zarr: None, kind: str) -> None:
    module, message, provoke = OF_ZARR_PYTHON[kind]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("error", message=f".*{re.escape(message)}", module=re.escape(module) + "$")
        with pytest.raises(ZarrUserWarning, match=re.escape(message)):
            provoke()
    assert not [item for item in caught if message in str(item.message)]


@pytest.mark.parametrize(("zarr_format", "members"), [(2, True), (2, False), (3, False)])
def test_consolidation_is_warned_of_only_where_zarr_python_warns(
    as_zarr: None, zarr_format: int, members: bool, recwarn: pytest.WarningsRecorder
) -> None:
    consolidated(zarr_format, members=members)
    assert not [item for item in recwarn.list if "Consolidated" in str(item.message)]


@pytest.mark.parametrize("kind", OF_ZARR_PYTHON)
def test_tessarr_s_own_surface_does_not_give_zarr_python_s_warnings(
    kind: str, recwarn: pytest.WarningsRecorder
) -> None:
    _, message, provoke = OF_ZARR_PYTHON[kind]
    provoke()
    assert not [item for item in recwarn.list if message in str(item.message)]


def test_codecs_of_numcodecs_are_not_warned_of_where_zarr_python_no_longer_warns(
    as_zarr: None, recwarn: pytest.WarningsRecorder
) -> None:
    """zarr-python 3.1, the last for CPython 3.11, warns; 3.2 and later, for 3.12 and newer, do not."""
    numcodecs_zlib(warns=False)
    assert not [item for item in recwarn.list if "Numcodecs" in str(item.message)]
    assert v3.ZARR_PYTHON_WARNS is (sys.version_info < (3, 12))

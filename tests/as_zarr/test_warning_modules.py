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
from tessarr.dtypes import unstable as dtypes_unstable
from tessarr.errors import UnstableSpecificationWarning, ZarrFutureWarning, ZarrUserWarning


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


def unstable(call: Callable[[], object]) -> list[str]:
    """The classes of the data types that `call` gives warnings of, one for each warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [item for item in caught if item.category is UnstableSpecificationWarning]
    assert all("does not have a Zarr V3 specification" in str(item.message) for item in found)
    assert all(item.filename == __file__ for item in found)
    return [str(item.message).partition("(")[2].partition("(")[0] for item in found]


@pytest.mark.parametrize("dtype", ["S5", "V4", "bytes"])
def test_every_write_of_a_document_with_an_unstable_data_type_warns_once_as_in_zarr_python(
    as_zarr: None, dtype: str
) -> None:
    group = tessarr.create_group({})
    assert len(unstable(lambda: group.create_array("a", shape=4, dtype=dtype))) == 1
    array = group["a"]
    for write in (
        lambda: array.attrs.update(units="K"),
        lambda: array.resize((6,)),
        array.metadata.to_dict,
        lambda: tessarr.dtype.parse_data_type(dtype, zarr_format=3).to_json(zarr_format=3),
        lambda: tessarr.consolidate_metadata(group.store),
    ):
        assert len(unstable(write)) == 1


def test_reading_an_unstable_data_type_and_writing_format_2_do_not_warn(as_zarr: None) -> None:
    store: dict[str, object] = {}
    unstable(lambda: tessarr.create_array(store, shape=4, dtype="S5"))
    opened = tessarr.open_array(store)
    assert unstable(lambda: tessarr.open_array(store)) == []
    assert unstable(lambda: opened[:]) == []
    assert unstable(lambda: opened.__setitem__(slice(None), b"x")) == []
    assert unstable(lambda: tessarr.create_array({}, shape=4, dtype="S5", zarr_format=2)) == []
    assert unstable(lambda: tessarr.create_array({}, shape=4, dtype="M8[s]")) == []


def test_fields_of_unstable_data_types_are_warned_of_by_name(as_zarr: None) -> None:
    with mock.patch.object(dtypes_unstable, "OLD", new=False):
        named = unstable(lambda: tessarr.create_array({}, shape=2, dtype=[("a", "S4"), ("b", "f8")]))
        assert named == ["NullTerminatedBytes"]
        assert unstable(lambda: tessarr.create_array({}, shape=2, dtype="U3")) == []
    with mock.patch.object(dtypes_unstable, "OLD", new=True):  # zarr-python 3.1, the last for CPython 3.11
        named = unstable(lambda: tessarr.create_array({}, shape=2, dtype=[("a", "S4"), ("b", "f8")]))
        assert named == ["Struct", "NullTerminatedBytes"]
        assert unstable(lambda: tessarr.create_array({}, shape=2, dtype="U3")) == ["FixedLengthUTF32"]
    assert dtypes_unstable.OLD is (sys.version_info < (3, 12))


def test_an_unstable_data_type_that_a_filter_makes_an_error_of_leaves_nothing_behind(as_zarr: None) -> None:
    store: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("error", category=ZarrFutureWarning, module=r"zarr\.core\.dtype\.npy\.bytes$")
        with pytest.raises(UnstableSpecificationWarning):
            tessarr.create_array(store, shape=4, dtype="S5")
    assert store == {}


def test_tessarr_s_own_surface_does_not_warn_of_unstable_data_types() -> None:
    assert unstable(lambda: tessarr.create_array({}, shape=4, dtype="S5").metadata.to_dict()) == []


def test_reserved_names_warn_and_are_no_errors_of_packages_that_raise_their_own_warnings(as_zarr: None) -> None:
    """xarray names a variable ``__xarray_dataarray_variable__``, and its tests have the filter ``error:::xarray.*``."""
    group = tessarr.create_group({})
    with warnings.catch_warnings():
        warnings.filterwarnings("error", module=re.escape(__name__))
        with pytest.warns(ZarrUserWarning, match='begins with "__"'):
            group.create_array("__a", shape=2, dtype="u1")
        with pytest.warns(ZarrUserWarning, match='begins with "__"') as opened:
            assert group["__a"].shape == (2,)
    assert [item.filename for item in opened.list] == [__file__]

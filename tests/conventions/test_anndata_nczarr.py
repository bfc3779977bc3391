"""The pieces of AnnData objects and what NCZarr notes, of several generations of both."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import pytest

import tessarr
from tessarr import conventions, model
from tessarr.conventions.base import Node
from tessarr.conventions.recognised import anndata, nczarr
from tessarr.stores.memory.store import MemoryStore
from tessarr.tools.check import check

FIXTURES = Path(__file__).parents[1] / "fixtures"


def hierarchy(place: Path) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return conventions.hierarchy_of(model.from_store(tessarr.open(place, mode="r")))


def group(**attributes: Any) -> Node:
    return Node(kind="group", attributes=attributes)


def array(*shape: int, **attributes: Any) -> Node:
    return Node(kind="array", attributes=attributes, shape=shape)


# -- AnnData -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "layers", "columns"),
    [
        ("anndata/v0.11.4/adata.zarr.zip", (10, 20), [], ()),
        ("anndata/v0.7.8/adata.zarr.zip", (30, 20), ["array", "sparse"],
         ("obs_cat", "cat_ordered", "int64", "float64", "uint8")),
        ("vitessce/anndata-0.9/anndata-csc.zarr", (3, 15), ["float32", "int32", "int64"], ("leiden",)),
        ("vitessce/anndata-0.12/anndata-csr.adata.zarr", (3, 15), ["float32", "int32", "int64"], ("leiden",)),
    ],
)  # fmt: skip
def test_the_pieces_of_an_anndata_object_are_found(name: str, shape: Any, layers: Any, columns: Any) -> None:
    nodes = hierarchy(FIXTURES / name)
    found = anndata.parts(nodes)
    assert found is not None
    assert found.shape == shape
    assert sorted(found.mappings["layers"]) == layers
    assert found.obs is not None
    assert found.obs.columns == columns
    assert (found.x == "X") is ("X" in nodes)
    assert [str(problem) for _, problem in conventions.check_hierarchy(nodes)] == []


def test_sparse_matrices_tables_and_categories_are_read() -> None:
    nodes = hierarchy(FIXTURES / "vitessce" / "anndata-0.9" / "anndata-csc.zarr")
    assert anndata.read_sparse(nodes["X"].attributes) == anndata.Sparse("csc", (3, 15))
    assert anndata.categorical("obs/leiden", nodes) == ("obs/leiden/codes", "obs/leiden/categories", False)
    assert anndata.categorical("obs", nodes) is None
    older = hierarchy(FIXTURES / "anndata" / "v0.7.8" / "adata.zarr.zip")
    assert anndata.categorical("obs/cat_ordered", older) == ("obs/cat_ordered", "obs/__categories/cat_ordered", True)
    assert anndata.categorical("obs/int64", older) is None
    assert anndata.read_sparse({"h5sparse_format": "csr", "h5sparse_shape": [2, 3]}) == ("csr", (2, 3))
    assert anndata.read_dataframe({"column-order": ["a"]}) is None
    assert anndata.parts({"": group()}) is None


def test_parts_of_an_anndata_object_that_do_not_fit_together_are_told() -> None:
    table = {"encoding-type": "dataframe", "encoding-version": "0.2.0", "_index": "i", "column-order": ["a"]}
    sparse = {"encoding-type": "csr_matrix", "encoding-version": "0.1.0", "shape": [4, 3]}
    matrix = {f"obsp/m/{name}": array(2) for name in ("data", "indices", "indptr")}
    nodes = {
        "": group(**{"encoding-type": "anndata", "encoding-version": "0.1.0"}),
        "X": array(4, 5), "obs": group(**table), "obs/i": array(4), "obs/a": array(3),
        "var": group(**{**table, "column-order": []}), "var/i": array(3),
        "layers": group(), "layers/l": array(4, 3), "obsm": group(), "obsm/p": array(9, 2),
        "obsp": group(), "obsp/m": group(**sparse), **matrix,
    }  # fmt: skip
    told = [problem.message for _, problem in conventions.check_hierarchy(nodes) if problem.rule == "ANNDATA-SHAPE"]
    assert told == [
        "X has lengths [4, 5], the object [4, 3]",
        "obsm/p has lengths [9, 2], the object [4]",
        "obsp/m has lengths [4, 3], the object [4, 4]",
        "column 'a' has 3 rows, the index 4",
    ]


def test_the_encodings_of_others_are_not_taken_for_anndata() -> None:
    assert conventions.detect(group(**{"encoding-type": "ngff:points"})) == ()
    (problem,) = conventions.check_node(group(**{"encoding-type": "dict"}))
    assert problem.rule == "ANNDATA-VERSION"


# -- NCZarr ------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("OGC-13")
def test_what_netcdf_c_notes_in_attributes_is_read(tmp_path: Path) -> None:
    place = tmp_path / "a.zarr"
    with netCDF4.Dataset(f"file://{place}#mode=nczarr,file", "w") as made:
        made.createDimension("t", None)
        made.createDimension("x", 4)
        inner = made.createGroup("g")
        inner.createDimension("y", 3)
        inner.createVariable("w", "i2", ("y", "x"), fill_value=-1).scale_factor = np.float32(0.5)
        made.createVariable("crs", "i4", ())
    nodes = hierarchy(place)
    root = nczarr.read_group(nodes[""].attributes)
    assert root is not None
    assert (root.dimensions, root.unlimited, root.groups) == ({"t": 0, "x": 4}, ("t",), ("g",))
    assert nczarr.dimensions("g/w", nodes) == {"/g/y": 3, "/x": 4}
    assert nczarr.attribute_types(nodes["g/w"].attributes)["scale_factor"] == "<f4"
    scalar = nczarr.read_array(nodes["crs"].attributes)
    assert scalar is not None
    assert scalar.scalar
    assert scalar.dimensions == ()
    assert [str(problem) for _, problem in conventions.check_hierarchy(nodes)] == []
    assert check(place).ok


@pytest.mark.spec("OGC-13")
def test_what_netcdf_c_once_noted_in_the_documents_is_read() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        place = FIXTURES / "gdal" / "nczarr_v2.zarr"
        names = ("", "MyGroup", "MyGroup/Group_A", "MyGroup/Group_A/dset2", "MyGroup/lat")
        nodes = conventions.hierarchy_of({name: tessarr.open(place, path=name, mode="r") for name in names})
    found = nczarr.read_group(nodes["MyGroup"].attributes, nodes["MyGroup"].extra)
    assert found == ({"lon": 3, "lat": 3}, (), ("dset1", "lon", "lat"), ("Group_A",))
    assert nczarr.dimensions("MyGroup/Group_A/dset2", nodes) == {"/MyGroup/lat": 3, "/MyGroup/lon": 3}
    assert conventions.detect(nodes["MyGroup"]) == ("nczarr",)
    assert [str(problem) for _, problem in conventions.check_hierarchy(nodes)] == []


def test_the_oldest_documents_of_nczarr_are_read() -> None:
    assert nczarr.read_group({}, {".nczgroup": {"dims": {"x": 2}, "vars": ["v"], "groups": []}}) == (
        {"x": 2}, (), ("v",), (),
    )  # fmt: skip
    assert nczarr.read_array({}, {".nczarray": {"dimrefs": ["/x"], "storage": "chunked"}}) == (
        ("/x",),
        "chunked",
        False,
    )
    assert nczarr.attribute_types({}, {".nczattr": {"types": {"a": "<i4"}}}) == {"a": "<i4"}


def test_dimensions_that_do_not_fit_are_told() -> None:
    nodes = {
        "": group(_nczarr_group={"dimensions": {"x": 4, "t": {"size": 9, "unlimited": 1}}}),
        "a": array(3, 2, _nczarr_array={"dimension_references": ["/t", "/x"]}),
        "b": array(3, _nczarr_array={"dimension_references": ["/z"]}),
        "c": array(3, _nczarr_array={"dimension_references": ["/t", "/x"]}),
    }
    told = [(path, problem.message, problem.rule) for path, problem in conventions.check_hierarchy(nodes)]
    assert told == [
        ("a", "/x has 4 elements, the array 2", "NCZARR-DIMENSIONS"),
        ("b", "refers to /z, which its group does not define", "NCZARR-DIMENSIONS"),
        ("c", "names 2 dimensions, the array has 1", "NCZARR-DIMENSIONS"),
    ]


@pytest.mark.parametrize("value", [None, 3, "x", [], {"dimensions": 1, "dims": [], "dimrefs": {"a": 1}}])
def test_malformed_notes_are_nothing(value: Any) -> None:
    store = MemoryStore()
    made = tessarr.create_group(store, attributes={"_nczarr_group": value, "_nczarr_array": value})
    made.create_array("a", shape=(2,), dtype="i1", attributes={"_nczarr_array": value, "_nczarr_attr": value})
    check(store)
